//! A charge on a count of a row: whether it fits, the count with it, and the limit's status.

use core::time::Duration;

use crate::algorithm::{State, bucket};
use crate::charge::Charge;
use crate::decision::Decision;
use crate::outcome::Outcome;
use crate::status::{Left, LimitStatus};
use crate::statuses::Statuses;
use crate::time::Timestamp;

/// Writes the decision on this many charges.
///
/// `charge` returns a charge and the count of its limit, which includes the charge if it is admitted.
#[inline]
pub(super) fn conclude<'c>(
    decision: &mut Decision,
    now: u64,
    is_admitted: bool,
    charges: usize,
    charge: impl Fn(usize) -> (&'c Charge<'c>, u64),
) {
    let at = Timestamp::from_micros(now);
    let status = |limit, is_admitted| {
        let (charge, count) = charge(limit);
        charge.status(count, now, is_admitted)
    };
    match is_admitted {
        true => decision.admit(at, Statuses::from_fn(charges, |limit| status(limit, true))),
        false => decision.refuse(at, Statuses::from_fn(charges, |limit| status(limit, false))),
    }
}

impl Charge<'_> {
    /// Returns whether it is decided by a count in a row.
    #[inline]
    pub(super) fn fits_row(&self) -> bool {
        self.is_plain() || self.is_plain_but_for_window()
    }

    /// Returns whether the limit admits the charge, with this count now.
    #[inline]
    pub(super) fn fits(&self, count: u64, now: u64) -> bool {
        let (quota, cost) = (self.quota(), self.units());
        match quota.refill() {
            0 => State::unpacked(count, quota, now).judge(quota, now, cost, 0) == Outcome::Allow,
            _ => bucket::holds(quota, count, cost),
        }
    }

    /// Returns the count with the charge. Returns `None` if a row has no word for it.
    #[inline]
    pub(super) fn added(&self, count: u64, now: u64) -> Option<u64> {
        let (quota, cost) = (self.quota(), self.units());
        if quota.refill() > 0 {
            return Some(count + cost * quota.grain());
        }
        let mut state = State::unpacked(count, quota, now);
        state.take(quota, now, cost);
        state.packed(quota, now)
    }

    /// Returns the limit's status after the decision.
    ///
    /// The count includes the charge if it is admitted.
    #[inline]
    fn status(&self, count: u64, now: u64, is_admitted: bool) -> LimitStatus {
        match (self.quota().refill(), is_admitted) {
            (0, _) => self.window_status(count, now, is_admitted),
            (_, true) => self.admitted(count),
            (_, false) => self.refused(count),
        }
    }

    #[cold]
    #[inline(never)]
    fn window_status(&self, count: u64, now: u64, is_admitted: bool) -> LimitStatus {
        let (name, quota) = (self.name(), self.quota());
        let state = State::unpacked(count, quota, now);
        let (remaining, reset) = state.left(quota, now);
        let left = Left::new(remaining, Duration::from_micros(reset));
        let (left, taken, outcome) = match (is_admitted, state.judge(quota, now, self.units(), 0)) {
            (true, Outcome::Refuse(wait)) => (left.again_after(wait), self.units(), Outcome::Allow),
            (true, _) => (left, self.units(), Outcome::Allow),
            (false, outcome) => (left, 0, outcome),
        };
        LimitStatus {
            name,
            limit: quota.capacity(),
            left,
            taken,
            outcome,
            is_shadow: false,
        }
    }

    /// Returns the limit's status after it has admitted the charge, with this many grains used now.
    #[inline]
    pub(super) fn admitted(&self, used: u64) -> LimitStatus {
        LimitStatus {
            name: self.name(),
            limit: self.quota().capacity(),
            left: Left::of_bucket(self.quota(), used),
            taken: self.units(),
            outcome: Outcome::Allow,
            is_shadow: false,
        }
    }

    /// Returns the limit's status after a refusal, with this many grains used before.
    #[inline]
    pub(super) fn refused(&self, used: u64) -> LimitStatus {
        let (quota, cost) = (self.quota(), self.units());
        let outcome = match bucket::holds(quota, used, cost) {
            true => Outcome::Allow,
            false if cost > quota.capacity() => Outcome::Never,
            false => Outcome::Refuse(Duration::from_micros(bucket::until_fits(quota, used, cost))),
        };
        LimitStatus {
            outcome,
            taken: 0,
            ..self.admitted(used)
        }
    }
}
