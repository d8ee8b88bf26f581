//! Sliding window counter: two counters and a weight.
//!
//! The estimate for the last period is `before * overlap / period + count`. `overlap` is the part of the window before
//! that is less than one period ago. The code multiplies both sides of a comparison by the steps of a window instead
//! of dividing. A step is one microsecond. If the products would exceed 2^53, a step is as long as necessary, and the
//! overlap is rounded up, against the client.
//!
//! The estimate is compared in full units. A client at the limit therefore gets up to one unit less per window than the
//! quota. If the quota is one unit, the client gets a unit in every second window.
//!
//! Bound: the estimate never exceeds `units`. If all requests of the window before came at once, up to `2 * units` can
//! fall into a span of one period, as in a fixed window.

use super::State;
use super::counting::Counting;
use crate::bytes::{push_u56, read_u56};
use crate::quota::{Algorithm, MOST_GRAINS, Quota};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlidingWindow {
    /// The start of the current window, in microseconds since the epoch.
    start: u64,
    /// Units counted in the window before.
    before: u64,
    /// Units counted in the current window.
    count: u64,
}

impl State {
    /// Returns a sliding window in which one unit fits at `until` or a little earlier, in the current window.
    ///
    /// The state has a full window before. Returns `None` for other algorithms.
    pub(crate) fn fading_until(quota: &Quota, until: u64, now: u64) -> Option<Self> {
        if quota.algorithm() != Algorithm::SlidingWindow {
            return None;
        }
        let before = quota.capacity();
        let mut window = SlidingWindow {
            before,
            ..SlidingWindow::unpacked(0, quota, now)
        };
        if until >= window.start + quota.period_micros() {
            return None;
        }
        let weight = (before * window.overlap(quota, until)).div_ceil(steps(quota));
        window.count = (before - 1).checked_sub(weight)?;
        Some(Self::SlidingWindow(window))
    }
}

impl SlidingWindow {
    /// Returns the counters of the window at `now`.
    fn at(self, quota: &Quota, now: u64) -> Self {
        let start = now - now % quota.period_micros();
        let (before, count) = match start - self.start {
            0 => (self.before, self.count),
            passed if passed == quota.period_micros() => (self.count, 0),
            _ => (0, 0),
        };
        Self {
            start,
            before,
            count,
        }
    }

    /// Returns the steps of the window before that are less than a period ago, rounded up.
    ///
    /// If the steps do not divide the period, the incomplete last step counts in the overlap but not in [`steps`]. The
    /// weight is therefore never below the exact weight, and never above 1.
    fn overlap(&self, quota: &Quota, now: u64) -> u64 {
        let left = self.start + quota.period_micros() - now;
        left.div_ceil(quota.grain()).min(steps(quota))
    }
}

impl Counting for SlidingWindow {
    fn until_fits(&self, quota: &Quota, now: u64, cost: u64) -> u64 {
        let capacity = quota.capacity();
        if self.used(quota, now) + cost <= capacity {
            return 0;
        }
        let window = self.at(quota, now);
        let elapsed = now - window.start;
        match (capacity - cost).checked_sub(window.count) {
            // The window before has to fade far enough.
            Some(room) => until_weight_fits(quota, window.before, room) - elapsed,
            // The current window has to end and fade far enough.
            None => {
                let fading = until_weight_fits(quota, window.count, capacity - cost);
                quota.period_micros() - elapsed + fading
            }
        }
    }

    fn full_at(&self, quota: &Quota) -> u64 {
        match (self.before, self.count) {
            (0, 0) => 0,
            (_, 0) => self.start + quota.period_micros(),
            _ => self.start + 2 * quota.period_micros(),
        }
    }

    fn used(&self, quota: &Quota, now: u64) -> u64 {
        let window = self.at(quota, now);
        let weighed = window.before * window.overlap(quota, now);
        weighed.div_ceil(steps(quota)) + window.count
    }

    fn advance(&mut self, quota: &Quota, now: u64) {
        *self = self.at(quota, now);
    }

    fn take(&mut self, quota: &Quota, _: u64, cost: u64) -> u64 {
        let taken = cost.min(most_counted(quota) - self.count);
        self.count += taken;
        taken
    }

    fn refund(&mut self, quota: &Quota, _: u64, cost: u64, taken_at: u64, _: bool) {
        if taken_at >= self.start {
            self.count = self.count.saturating_sub(cost);
        } else if self.start - taken_at <= quota.period_micros() {
            self.before = self.before.saturating_sub(cost);
        }
    }

    fn encode(&self, _: &Quota, bytes: &mut Vec<u8>) {
        for number in [self.start, self.before, self.count] {
            push_u56(bytes, number);
        }
    }

    fn decode(quota: &Quota, bytes: &mut &[u8], _: u64, at: u64) -> Option<Self> {
        let weights = quota.capacity().checked_mul(steps(quota))?;
        if !(1..=MOST_GRAINS).contains(&weights) {
            return None;
        }
        let (start, before, count) = (read_u56(bytes)?, read_u56(bytes)?, read_u56(bytes)?);
        let is_sound = start <= at
            && start.is_multiple_of(quota.period_micros())
            && before.max(count) <= most_counted(quota);
        is_sound.then_some(Self {
            start,
            before,
            count,
        })
    }

    fn packed(&self, quota: &Quota, at: u64) -> Option<u64> {
        let Self { before, count, .. } = self.at(quota, at);
        Some(u64::from(u32::try_from(before).ok()?) << 32 | u64::from(u32::try_from(count).ok()?))
    }

    fn unpacked(word: u64, quota: &Quota, at: u64) -> Self {
        Self {
            start: at - at % quota.period_micros(),
            before: word >> 32,
            count: word & 0xffff_ffff,
        }
    }
}

/// Returns the most units that a window counts, debts included.
///
/// The result is at least twice the capacity, and small enough for weighted sums below 2^53.
const fn most_counted(quota: &Quota) -> u64 {
    2 * MOST_GRAINS / steps(quota)
}

/// Returns the microseconds into a window until `before` units of the window before weigh at most `room` units.
fn until_weight_fits(quota: &Quota, before: u64, room: u64) -> u64 {
    if before <= room {
        return 0;
    }
    // before * overlap <= room * steps, so the overlap may have at most this many steps.
    let overlap = room * steps(quota) / before;
    quota.period_micros() - overlap * quota.grain()
}

const fn steps(quota: &Quota) -> u64 {
    quota.period_micros() / quota.grain()
}
