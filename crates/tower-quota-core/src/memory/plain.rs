//! Decides plain charges on a count of a row.

use core::time::Duration;

use crate::algorithm::{State, bucket};
use crate::charge::Charge;
use crate::outcome::Outcome;
use crate::status::{Left, LimitStatus};

impl Charge<'_> {
    pub(super) fn fits_row(&self) -> bool {
        self.is_plain() || self.is_plain_but_for_window()
    }

    #[inline]
    pub(super) fn fits(&self, count: u64, now: u64) -> bool {
        let quota = self.quota();
        let cost = self.units();
        if quota.refill() > 0 {
            return cost <= quota.capacity()
                && count + cost * quota.grain() <= quota.capacity() * quota.grain();
        }
        matches!(self.outcome(count, now), Outcome::Allow)
    }

    pub(super) fn outcome(&self, count: u64, now: u64) -> Outcome {
        let quota = self.quota();
        if quota.refill() > 0 {
            return bucket::outcome(quota, count, self.units());
        }
        State::unpacked(count, quota, now).judge(quota, now, self.units(), 0)
    }

    /// Returns the count with the charge, unless the count is too large for a row.
    #[inline]
    pub(super) fn added(&self, count: u64, now: u64) -> Option<u64> {
        let quota = self.quota();
        if quota.refill() > 0 {
            return Some(count + self.units() * quota.grain());
        }
        self.added_to_window(count, now)
    }

    #[inline(never)] // Inlined, the steps of a window take registers from the path of a bucket.
    fn added_to_window(&self, count: u64, now: u64) -> Option<u64> {
        let quota = self.quota();
        let mut state = State::unpacked(count, quota, now);
        state.take(quota, now, self.units());
        state.packed(quota, now)
    }

    #[inline]
    pub(super) fn status(&self, count: u64, now: u64, is_admitted: bool) -> LimitStatus {
        let quota = self.quota();
        let mut left = Left::of_bucket(quota, count);
        let mut outcome = Outcome::Allow;
        if quota.refill() == 0 || !is_admitted {
            (left, outcome) = self.left_and_outcome(count, now, is_admitted);
        }
        LimitStatus {
            name: self.name(),
            limit: quota.capacity(),
            left,
            taken: if is_admitted { self.units() } else { 0 },
            outcome,
            is_shadow: false,
        }
    }

    #[inline(never)] // Inlined, the status of an admitted bucket is copied, and the copy waits for the parts.
    fn left_and_outcome(&self, count: u64, now: u64, is_admitted: bool) -> (Left, Outcome) {
        let quota = self.quota();
        let mut left = Left::of_bucket(quota, count);
        if quota.refill() == 0 {
            let (balance, reset) = State::unpacked(count, quota, now).balance(quota, now);
            left = Left::of_balance(balance, Duration::from_micros(reset));
        }
        let outcome = if is_admitted {
            Outcome::Allow
        } else {
            self.outcome(count, now)
        };
        (left, outcome)
    }
}
