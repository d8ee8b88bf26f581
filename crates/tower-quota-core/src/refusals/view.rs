//! One charge of a request, as the table sees it.

use smallvec::SmallVec;

use crate::charge::Charge;
use crate::key::Key;
use crate::key_hasher::KeyHasher;

/// The charges of a request, in their order.
pub(super) type Views = SmallVec<[ChargeView; 4]>;

/// The identity of a limit of a key: 128 bits that clients can neither choose nor compute.
pub(super) type Tag = [u64; 2];

/// The numbers of a charge by which an entry refuses it. They outlive the charge.
#[derive(Clone, Copy)]
pub(super) struct ChargeView {
    pub(super) tag: Tag,
    /// Identifies the quota and the penalty by their numbers.
    pub(super) fingerprint: u64,
    pub(super) units: u64,
    /// The least units that the charge could take.
    pub(super) least_units: u64,
    /// The longest accepted wait, in microseconds.
    pub(super) max_wait: u64,
    /// Says whether a refused request is charged.
    pub(super) counts_refusals: bool,
    /// Says whether a refusal by this limit gives a strike.
    pub(super) gives_strikes: bool,
}

impl ChargeView {
    fn new(charge: &Charge<'_>, digest: u128) -> Self {
        // Multiplied by an odd number, different limits of one key get different tags.
        let tag = digest
            ^ u128::from(charge.name().id())
                .wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        #[expect(clippy::cast_possible_truncation, reason = "the halves of a hash")]
        let tag = [tag as u64, (tag >> 64) as u64];
        let units = charge.units();
        Self {
            tag,
            fingerprint: fingerprint(charge),
            units,
            least_units: if charge.is_at_most() {
                units.min(1)
            } else {
                units
            },
            max_wait: charge.max_wait_micros(),
            counts_refusals: charge.counts_refusals() && units > 0,
            gives_strikes: charge.penalised_by().is_some() && units > 0,
        }
    }
}

/// Returns the number of a quota and a penalty, which the service gives: no client chooses them.
///
/// Two quotas that differ in one number never have the same.
fn fingerprint(charge: &Charge<'_>) -> u64 {
    let quota = charge.quota();
    let offset = quota.window_offset().unwrap_or(u64::MAX);
    let (units, period) = (quota.units(), quota.period_micros());
    let of_quota = [
        quota.algorithm() as u64,
        offset,
        units,
        period,
        quota.capacity(),
        quota.grain(),
        quota.refill(),
    ];
    let mix = |hash: u64, number: u64| {
        (hash.rotate_left(29) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    };
    let of_quota = of_quota.into_iter().fold(0, mix);
    let Some(penalty) = charge.penalised_by() else {
        return of_quota;
    };
    let strikes = penalty.strikes();
    let of_penalty = [
        strikes.units(),
        strikes.period_micros(),
        strikes.capacity(),
        penalty.most_debt(),
    ];
    of_penalty.into_iter().fold(of_quota, mix)
}

/// Returns the views of a request's charges.
pub(super) fn views(charges: &[Charge<'_>], hasher: &KeyHasher) -> Views {
    // Limits often count one key, which is hashed once.
    let mut last: Option<(*const Key<'_>, u128)> = None;
    let mut views = Views::new();
    for charge in charges {
        let key = core::ptr::from_ref(charge.key()).cast();
        let digest = match last {
            Some((known, digest)) if known == key => digest,
            _ => hasher.digest(charge.key()),
        };
        last = Some((key, digest));
        views.push(ChargeView::new(charge, digest));
    }
    views
}
