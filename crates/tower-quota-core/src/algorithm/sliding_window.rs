//! Sliding window counter: two counters and a weight.
//!
//! The estimate of the last period is `before * overlap / period + count`, where `overlap` is how much of the earlier
//! window is still less than one period ago. It is compared without division, both sides multiplied by the number of
//! steps in a window. A step is one microsecond, unless the products would not fit into 53 bits; then it is just long
//! enough that they do, and the overlap is rounded up, against the client.
//!
//! The estimate is compared in full units. A client at the limit therefore gets up to one unit less per window than the
//! quota says; of a quota of one unit it gets one in every two windows.
//!
//! Bound: the estimate never exceeds `units` at any instant. If the earlier window's requests came all at once, up to
//! `2 * units` can fall into a span of one period, as in a fixed window.

use super::counting::{Counting, Refund};
use crate::bytes::{push_u56, read_u56};
use crate::outcome::Outcome;
use crate::quota::{MOST_GRAINS, Quota};

/// The counters of a sliding window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlidingWindow {
    /// The start of the current window, in microseconds since the epoch.
    start: u64,
    /// Units counted in the window before.
    before: u64,
    /// Units counted in the current window.
    count: u64,
}

/// Returns the start of the window that `now` falls into.
fn start(quota: &Quota, now: u64) -> u64 {
    now - now % quota.period_micros()
}

impl SlidingWindow {
    /// Returns counters of the present window in which one unit fits at `until`, or a little sooner. The window before
    /// was full then.
    pub(super) fn fading_until(quota: &Quota, until: u64, now: u64) -> Option<Self> {
        let (start, capacity) = (start(quota, now), quota.capacity());
        if until >= start + quota.period_micros() {
            return None;
        }
        let weight = (capacity * overlap(quota, start, until)).div_ceil(steps(quota));
        Some(Self {
            start,
            before: capacity,
            count: (capacity - 1).checked_sub(weight)?,
        })
    }

    /// Returns the counters of the window at `now`.
    fn at(self, quota: &Quota, now: u64) -> Self {
        let start = start(quota, now);
        match start - self.start {
            0 => self,
            passed if passed == quota.period_micros() => Self {
                start,
                before: self.count,
                count: 0,
            },
            _ => Self {
                start,
                before: 0,
                count: 0,
            },
        }
    }

    /// Returns the estimate at `now` in parts of a step, and the steps, of a state that was advanced to it.
    fn weighed(&self, quota: &Quota, now: u64) -> (u64, u64) {
        let steps = steps(quota);
        (
            self.before * overlap(quota, self.start, now) + self.count * steps,
            steps,
        )
    }
}

impl Counting for SlidingWindow {
    fn judge(&self, quota: &Quota, now: u64, cost: u64, _: u64) -> Outcome {
        if self.used(quota, now).0 + cost <= quota.capacity() {
            return Outcome::Allow;
        }
        let Self {
            start,
            before,
            count,
        } = self.at(quota, now);
        let (period, capacity) = (quota.period_micros(), quota.capacity());
        let into = now - start;
        let retry = if count + cost <= capacity {
            // The earlier window has to fade far enough.
            until_weight_fits(quota, before, capacity - count - cost) - into
        } else {
            // This window has to end, become the earlier one, and fade far enough.
            period - into + until_weight_fits(quota, count, capacity - cost)
        };
        Outcome::refuse_for(retry)
    }

    fn full_at(&self, quota: &Quota) -> u64 {
        match (self.before, self.count) {
            (0, 0) => 0,
            (_, 0) => self.start + quota.period_micros(),
            _ => self.start + 2 * quota.period_micros(),
        }
    }

    fn used(&self, quota: &Quota, now: u64) -> (u64, u64) {
        let (weighed, steps) = self.at(quota, now).weighed(quota, now);
        (weighed.div_ceil(steps), 1)
    }

    fn advance(&mut self, quota: &Quota, now: u64) {
        *self = self.at(quota, now);
    }

    fn take(&mut self, quota: &Quota, _: u64, cost: u64) -> u64 {
        let before = self.count;
        self.count = before.saturating_add(cost).min(most_counted(quota));
        self.count - before
    }

    fn refund(&mut self, quota: &Quota, _: u64, Refund { cost, taken_at, .. }: Refund) {
        if taken_at >= self.start {
            self.count = self.count.saturating_sub(cost);
        } else if self.start - taken_at <= quota.period_micros() {
            self.before = self.before.saturating_sub(cost);
        }
    }

    fn encode(&self, _: &Quota, bytes: &mut Vec<u8>) {
        [self.start, self.before, self.count]
            .into_iter()
            .for_each(|number| push_u56(bytes, number));
    }

    /// Returns `None` for counts of which two do not fit into a word.
    fn packed(&self, quota: &Quota, at: u64) -> Option<u64> {
        let Self { before, count, .. } = self.at(quota, at);
        Some(u64::from(u32::try_from(before).ok()?) << 32 | u64::from(u32::try_from(count).ok()?))
    }

    fn unpacked(word: u64, quota: &Quota, at: u64) -> Self {
        Self {
            before: word >> 32,
            count: word & 0xffff_ffff,
            ..Self::fresh(quota, at)
        }
    }

    fn fresh(quota: &Quota, now: u64) -> Self {
        Self {
            start: start(quota, now),
            before: 0,
            count: 0,
        }
    }

    fn decode(quota: &Quota, bytes: &mut &[u8], _: u64, at: u64) -> Option<Self> {
        let (start, before, count) = (read_u56(bytes)?, read_u56(bytes)?, read_u56(bytes)?);
        let is_sound = start <= at && start.is_multiple_of(quota.period_micros());
        (is_sound && before.max(count) <= most_counted(quota)).then_some(Self {
            start,
            before,
            count,
        })
    }
}

/// Returns the most units that a window counts, debts included.
///
/// They are at least twice the capacity, and few enough that the weighted sums stay below 2^53.
const fn most_counted(quota: &Quota) -> u64 {
    2 * MOST_GRAINS / steps(quota)
}

/// Returns the steps of the earlier window that are less than a period ago, rounded up.
///
/// The steps may not divide the period. The incomplete last step then counts in the overlap and not in the sum of the
/// steps. So the weight is never less than the true one, and never more than 1.
fn overlap(quota: &Quota, start: u64, now: u64) -> u64 {
    (start + quota.period_micros() - now)
        .div_ceil(quota.grain())
        .min(steps(quota))
}

/// Returns the microseconds into a window until a count of `before` weighs at most `room` units.
///
/// The count is of the window before.
fn until_weight_fits(quota: &Quota, before: u64, room: u64) -> u64 {
    let steps = steps(quota);
    if before <= room {
        return 0;
    }
    // before * overlap <= room * steps, so the overlap may be at most this many steps.
    let overlap = room * steps / before;
    quota.period_micros() - overlap * quota.grain()
}

const fn steps(quota: &Quota) -> u64 {
    quota.period_micros() / quota.grain()
}
