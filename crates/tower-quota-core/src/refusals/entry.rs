//! The memory of one limit of one key.

use core::time::Duration;

use super::uncounted::Uncounted;
use super::view::{ChargeView, Tag};
use crate::algorithm::bucket;
use crate::charge::Charge;
use crate::decision::Decision;
use crate::outcome::Outcome;
use crate::quota::Quota;
use crate::status::{Left, LimitStatus};
use crate::sync::{SequenceLock, Words};
use crate::time::{Timestamp, micros};

/// The memory of one limit of one key: its last status, and the refusal that holds, if any.
///
/// Instants are microseconds of the cache's clock, unless it says otherwise.
#[derive(Clone, Copy)]
pub(super) struct KnownLimit {
    pub(super) tag: Tag,
    pub(super) fingerprint: u64,
    /// The instant before the call was sent.
    pub(super) sent: u64,
    /// The instant of the decision on the store's clock.
    at: Timestamp,
    /// The end of the refusal; 0 if there is none.
    pub(super) until: u64,
    /// The least cost that is refused.
    cost: u64,
    /// The longest accepted wait with which it is refused.
    max_wait: u64,
    /// The capacity of the store's quota.
    limit: u64,
    remaining: u64,
    full_at: u64,
    /// The last instant at which a call was sent that could carry refusals.
    pub(super) called: u64,
    pub(super) uncounted: Uncounted,
}

/// The default of the time for which a refusal is used while the store answers, in microseconds.
pub(super) const USED: u64 = 1_000_000;

/// The words of an entry. With their version they fill two cache lines.
pub(super) const WORDS: usize = 15;

// A table of the default capacity takes 2 MB, and its locks a tenth of that.
const _: () = assert!(size_of::<SequenceLock<WORDS>>() == 128);

impl KnownLimit {
    /// Returns the words that `of_words` reads.
    pub(super) const fn words(&self) -> [u64; WORDS] {
        let [tag, tag_high] = self.tag;
        let [strikes, least, units] = self.uncounted.words();
        [
            tag,
            tag_high,
            self.fingerprint,
            self.sent,
            self.at.as_micros(),
            self.until,
            self.cost,
            self.max_wait,
            self.limit,
            self.remaining,
            self.full_at,
            self.called,
            strikes,
            least,
            units,
        ]
    }

    /// Reads an entry, if it has this tag.
    #[inline]
    pub(super) fn of_words(tag: Tag, words: &Words<WORDS>) -> Option<Self> {
        if words.get(0) != tag[0] || words.get(1) != tag[1] {
            return None;
        }
        Some(Self {
            tag,
            fingerprint: words.get(2),
            sent: words.get(3),
            at: Timestamp::from_micros(words.get(4)),
            until: words.get(5),
            cost: words.get(6),
            max_wait: words.get(7),
            limit: words.get(8),
            remaining: words.get(9),
            full_at: words.get(10),
            called: words.get(11),
            uncounted: Uncounted::of_words([words.get(12), words.get(13), words.get(14)]),
        })
    }

    /// Makes the memory of a status that the store answered to a call that was sent at `sent`.
    ///
    /// An admitted request has taken what the next one may need.
    pub(super) fn new(
        view: &ChargeView,
        status: &LimitStatus,
        decision: &Decision,
        sent: u64,
    ) -> Self {
        let retry = match status.outcome {
            Outcome::Refuse(retry) => Some(retry),
            // A request that would wait is admitted with a later turn.
            Outcome::Allow if decision.is_allowed() && view.max_wait == 0 => {
                status.admits_again_after(view.least_units)
            }
            _ => None,
        };
        let until = retry.map_or(0, |retry| sent.saturating_add(micros(retry)));
        Self {
            tag: view.tag,
            fingerprint: view.fingerprint,
            sent,
            at: decision.at(),
            until,
            cost: view.least_units,
            max_wait: view.max_wait,
            limit: status.limit,
            remaining: status.remaining(),
            full_at: sent.saturating_add(micros(status.reset_after())),
            called: sent,
            uncounted: Uncounted::default(),
        }
    }

    /// Returns whether it refuses a charge now, by a refusal that is younger than `max_age` microseconds.
    pub(super) const fn refuses(&self, view: &ChargeView, now: u64, max_age: u64) -> bool {
        self.is_refusal_at(now)
            && now - self.sent < max_age
            && self.fingerprint == view.fingerprint
            && view.units > 0
            && self.cost <= view.least_units
            && view.max_wait <= self.max_wait
    }

    /// Returns whether it refuses any charge now. A clock that ran backwards ends a refusal.
    pub(super) const fn is_refusal_at(&self, now: u64) -> bool {
        self.sent <= now && now < self.until
    }

    /// Returns the order in which entries give way.
    ///
    /// First go statuses, then refusals that only an outage would use, then those that are used for the shortest time.
    pub(super) fn rank(&self, now: u64) -> (u8, u64, u64) {
        let used_until = self.until.min(self.sent.saturating_add(USED));
        match self.is_refusal_at(now) {
            true if now < used_until => (2, used_until, self.until),
            true => (1, self.until, self.sent),
            false => (0, self.sent, 0),
        }
    }

    /// Takes the numbers of a later status, and keeps the refusal.
    pub(super) const fn update_status(&mut self, later: &Self) {
        (self.limit, self.remaining, self.full_at) = (later.limit, later.remaining, later.full_at);
    }

    /// Returns how many requests of a charge fit now, by what is known: other calls may have changed that.
    ///
    /// Nothing is known of a window whose units have come back for longer than one of them takes.
    pub(super) fn fitting(&self, charge: &Charge<'_>, view: &ChargeView, now: u64) -> Option<u64> {
        let is_comparable =
            self.fingerprint == view.fingerprint && !charge.is_shadow() && view.max_wait == 0;
        let could_fit = view.least_units <= charge.quota().capacity();
        // The mean time in which as much comes back.
        let unit = (charge.quota().period_micros() / charge.quota().units())
            .saturating_mul(view.least_units);
        // When a cost fits says nothing of smaller ones.
        let known_at = if self.cost <= view.least_units {
            self.until
        } else {
            self.sent
        };
        let is_current =
            charge.quota().algorithm().is_bucket() || now.saturating_sub(known_at) < unit;
        if is_comparable && could_fit && is_current {
            self.aged_status(charge, now)
                .remaining()
                .checked_div(view.least_units)
        } else {
            None
        }
    }

    /// Returns whether its refusal holds for more charges than another one: smaller costs, or longer waits.
    pub(super) const fn refuses_more_than(&self, other: &Self) -> bool {
        self.cost <= other.cost && self.max_wait >= other.max_wait && !self.refuses_like(other)
    }

    const fn refuses_like(&self, other: &Self) -> bool {
        self.cost == other.cost && self.max_wait == other.max_wait
    }

    /// Returns the present instant on the store's clock.
    pub(super) fn store_now(&self, now: u64) -> Timestamp {
        self.at + Duration::from_micros(now.saturating_sub(self.sent))
    }

    /// Returns the present status of a refused request's charge.
    pub(super) fn status(
        &self,
        charge: &Charge<'_>,
        view: &ChargeView,
        now: u64,
        max_age: u64,
    ) -> LimitStatus {
        let mut status = self.aged_status(charge, now);
        if self.refuses(view, now, max_age) {
            let (quota, mut retry) = (charge.quota(), self.until - now);
            let is_larger = view.least_units != self.cost || view.max_wait != self.max_wait;
            if is_larger && quota.algorithm().is_bucket() {
                let used = self
                    .used_grains(quota, now)
                    .saturating_add(self.missing_grains(quota));
                if let Outcome::Refuse(longer) =
                    bucket::judge(quota, used, view.least_units, view.max_wait)
                {
                    retry = retry.max(micros(longer));
                }
            }
            status.outcome = Outcome::Refuse(Duration::from_micros(retry));
        }
        status
    }

    /// Returns the grains that are used of a bucket by this quota.
    const fn used_grains(&self, quota: &Quota, now: u64) -> u64 {
        self.full_at
            .saturating_sub(now)
            .saturating_mul(quota.refill())
    }

    /// Returns the grains that the store has less than a bucket of this quota, by its last answer.
    ///
    /// A store that counts by a smaller burst has less left than its reset says. Less than a unit is only rounded off.
    const fn missing_grains(&self, quota: &Quota) -> u64 {
        let used = self
            .full_at
            .saturating_sub(self.sent)
            .saturating_mul(quota.refill());
        let known = used.saturating_add(self.remaining.saturating_mul(quota.grain()));
        let missing = quota
            .capacity()
            .saturating_mul(quota.grain())
            .saturating_sub(known);
        if missing < quota.grain() { 0 } else { missing }
    }

    /// Returns whether a charge may be too large for a bucket that the store counts by a smaller burst.
    pub(super) fn may_never_fit(&self, charge: &Charge<'_>, view: &ChargeView) -> bool {
        let quota = charge.quota();
        let needed = view
            .least_units
            .saturating_mul(quota.grain())
            .saturating_add(self.missing_grains(quota));
        quota.algorithm().is_bucket() && needed > quota.capacity().saturating_mul(quota.grain())
    }

    /// Returns the status by the store's quota, as if every charge were admitted.
    fn aged_status(&self, charge: &Charge<'_>, now: u64) -> LimitStatus {
        let quota = charge.quota();
        let mut status =
            LimitStatus::of_bucket(charge.name(), quota, self.used_grains(quota, now), 0);
        if quota.algorithm().is_bucket() {
            // The store may count by a smaller burst, and then has less left. The time until full is rounded up, so
            // that it may say a unit less than was left.
            let refilled =
                now.saturating_sub(self.sent).saturating_mul(quota.refill()) / quota.grain();
            let most = self.remaining.saturating_add(refilled).saturating_add(1);
            let remaining = status.remaining().clamp(self.remaining, most);
            if quota.capacity() == self.limit && status.remaining() != remaining {
                status.left = Left::new(remaining, status.reset_after());
            }
        } else {
            let reset = self.full_at.saturating_sub(now);
            let remaining = if reset == 0 {
                quota.capacity()
            } else {
                self.remaining
            };
            status.left = Left::new(remaining, Duration::from_micros(reset));
        }
        status.is_shadow = charge.is_shadow();
        status
    }

    /// Returns the status by a share of the store's quota.
    ///
    /// As large a part of it is used, in full units. What is used of the store's quota is rounded up first, as the store
    /// does it: a client does not get the unit that is being refilled.
    pub(super) fn share_status(&self, charge: &Charge<'_>, now: u64) -> LimitStatus {
        let (quota, mut status) = (charge.quota(), self.aged_status(charge, now));
        let reset = status.reset_after();
        let (limit, share) = (u128::from(self.limit), u128::from(status.limit));
        let used = if reset.is_zero() {
            0
        } else if quota.algorithm().is_bucket() {
            let in_units = |grains: u64| {
                (u128::from(grains) * limit).div_ceil(u128::from(quota.grain()) * share)
            };
            // The store may count by a smaller burst, and then has less left.
            let refilled = in_units(now.saturating_sub(self.sent).saturating_mul(quota.refill()));
            let left = u128::from(self.remaining).saturating_add(refilled);
            in_units(self.used_grains(quota, now)).max(limit.saturating_sub(left))
        } else {
            u128::from(self.limit.saturating_sub(self.remaining))
        };
        let used = (used * share)
            .checked_div(limit)
            .and_then(|used| u64::try_from(used).ok())
            .unwrap_or(status.limit);
        status.left = Left::new(status.limit.saturating_sub(used), reset);
        status
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::charge::Operation;
    use crate::key::Key;
    use crate::key_hasher::KeyHasher;
    use crate::name::Name;
    use crate::refusals::view::views;

    fn of(status: LimitStatus) -> Decision {
        Decision::from_statuses(Operation::Check, Timestamp::EPOCH, [status])
    }

    /// Remembers a refusal of one unit, of a bucket of 1,000 a second with this many units left and used.
    fn refusal_of(left: u64, used: u64, refused: u64, larger: u64) -> (Outcome, bool) {
        let (quota, key) = (Quota::per_second(1_000), Key::EVERYONE);
        let charge = Charge::new("second", &quota, &key);
        let view_of = |cost| views(&[charge.cost(cost)], &KeyHasher::random())[0];
        let outcome = Outcome::Refuse(Duration::from_millis(refused - left));
        let left = Left::new(left, Duration::from_millis(used));
        let status = LimitStatus {
            name: charge.name(),
            limit: 1_000,
            left,
            taken: 0,
            outcome,
            is_shadow: false,
        };
        let known = KnownLimit::new(&view_of(refused), &status, &of(status), 7);
        let view = ChargeView {
            fingerprint: known.fingerprint,
            ..view_of(larger)
        };
        (
            known
                .status(&charge.cost(larger), &view, 7, u64::MAX)
                .outcome,
            known.may_never_fit(&charge, &view),
        )
    }

    #[test]
    fn larger_cost_waits_by_what_is_left() {
        let refused = |millis| Outcome::Refuse(Duration::from_millis(millis));
        assert_eq!(refusal_of(50, 950, 60, 100), (refused(50), false));
        assert_eq!(refusal_of(50, 950, 60, 1_000), (refused(950), false));
        // The store counts by a burst of 950 units.
        assert_eq!(refusal_of(0, 950, 1, 100), (refused(100), false));
        assert_eq!(refusal_of(50, 900, 60, 950), (refused(900), false));
        assert!(refusal_of(50, 900, 60, 951).1);
    }

    #[test]
    fn share_has_no_more_than_is_left() {
        let (quota, name, key) = (Quota::per_second(1_000), Name::new("second"), Key::EVERYONE);
        let charge = Charge::new(name, &quota, &key);
        let view = views(&[charge], &KeyHasher::random())[0];
        // The store counts by a burst of 950 units, which are used up.
        let left = Left::new(0, Duration::from_millis(950));
        let status = LimitStatus {
            name,
            limit: 1_000,
            left,
            taken: 0,
            outcome: Outcome::Allow,
            is_shadow: false,
        };
        let known = KnownLimit::new(&view, &status, &of(status), 7);
        for (micros, left) in [
            (0, 0),
            (500, 1),
            (10_000, 10),
            (940_000, 940),
            (950_000, 1_000),
        ] {
            assert_eq!(
                known.share_status(&charge, 7 + micros).remaining(),
                left,
                "after {micros} us"
            );
        }
    }
}
