//! One charge of a request, as the table sees it.

use core::hash::{Hash, Hasher};

use siphasher::sip::SipHasher13;
use smallvec::SmallVec;

use crate::charge::Charge;
use crate::key::Key;
use crate::name::Name;
use crate::quota::Quota;

/// The charges of a request, in their order.
pub(super) type Views = SmallVec<[ChargeView; 4]>;

/// The identity of a limit of a key: 128 bits that clients can neither choose nor compute.
pub(super) type Tag = [u64; 2];

/// One charge, without its key.
#[derive(Clone, Copy)]
pub(super) struct ChargeView {
    pub(super) tag: Tag,
    pub(super) name: Name,
    pub(super) quota: Quota,
    /// Identifies the quota and the penalty by their numbers.
    pub(super) fingerprint: u64,
    pub(super) units: u64,
    /// The longest accepted wait, in microseconds.
    pub(super) max_wait: u64,
    pub(super) is_shadow: bool,
    pub(super) is_at_most: bool,
    /// Says whether a refused request is charged, or gets a strike.
    pub(super) counts_refusals: bool,
}

impl ChargeView {
    /// Returns the least units that this charge could take.
    pub(super) const fn least_units(&self) -> u64 {
        if self.is_at_most && self.units > 1 { 1 } else { self.units }
    }

    /// Returns whether the limit can never admit this charge.
    pub(super) const fn never_fits(&self) -> bool {
        !self.is_shadow && self.least_units() > self.quota.capacity()
    }

    fn new(charge: &Charge<'_>, digest: u128, seed: &[u8; 16]) -> Self {
        // Multiplied by an odd number, different limits of one key get different tags.
        let tag = digest ^ u128::from(charge.name().id()).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        #[expect(clippy::cast_possible_truncation, reason = "the halves of a hash")]
        let tag = [tag as u64, (tag >> 64) as u64];
        let mut hasher = SipHasher13::new_with_key(seed);
        charge.quota().hash(&mut hasher);
        if let Some(penalty) = charge.penalised_by() {
            (penalty.strikes(), penalty.most_debt()).hash(&mut hasher);
        }
        Self {
            tag,
            name: charge.name(),
            quota: *charge.quota(),
            fingerprint: hasher.finish(),
            units: charge.units(),
            max_wait: charge.max_wait_micros(),
            is_shadow: charge.is_shadow(),
            is_at_most: charge.is_at_most(),
            counts_refusals: (charge.counts_refusals() || charge.penalised_by().is_some()) && charge.units() > 0,
        }
    }
}

/// Returns the views of a request's charges.
pub(super) fn views(charges: &[Charge<'_>], seed: &[u8; 16]) -> Views {
    // Limits often count one key, which is hashed once.
    let mut last: Option<(*const Key<'_>, u128)> = None;
    let view = |charge: &Charge<'_>| {
        let key = core::ptr::from_ref(charge.key()).cast();
        let digest = match last {
            Some((known, digest)) if known == key => digest,
            _ => charge.key().digest(seed),
        };
        last = Some((key, digest));
        ChargeView::new(charge, digest, seed)
    };
    charges.iter().map(view).collect()
}
