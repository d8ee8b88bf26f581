//! Fixed window and sliding window counter: counters per period.
//!
//! The estimate of a sliding window is `before * overlap / period + count`. `overlap` is the part of the window
//! before that is less than one period ago. The code counts in steps instead of dividing. A step is one
//! microsecond, or longer if the products would exceed 2^53. A fixed window has no window before.
//!
//! Bound: at most `units` per fixed window or estimate, and `2 * units` across a border.

use super::counting::Counting;
use crate::bytes::{push_u56, read_u56};
use crate::quota::{Algorithm, MOST_GRAINS, MOST_UNITS, Quota};

/// The most units that a window counts, debts included.
pub const MOST_COUNTED: u64 = 2 * MOST_GRAINS;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    start: u64,
    before: u64,
    count: u64,
}

impl Window {
    fn at(self, quota: &Quota, now: u64) -> Self {
        let period = quota.period_micros();
        let start = match quota.window_offset() {
            // The first window begins before the epoch. The clock starts at the epoch, so the
            // window is shorter.
            Some(offset) => now.saturating_sub((now % period + period - offset) % period),
            None if now - self.start < period => self.start,
            None => now,
        };
        let (before, count) = if start == self.start {
            (self.before, self.count)
        } else if is_sliding(quota) && start == self.start + period {
            (self.count, 0)
        } else {
            (0, 0)
        };
        Self {
            start,
            before,
            count,
        }
    }

    fn end(&self, quota: &Quota) -> u64 {
        match quota.window_offset() {
            // The first window begins before the epoch, and ends at the offset.
            Some(offset) if self.start < offset => offset,
            _ => self.start + quota.period_micros(),
        }
    }

    fn weight(&self, quota: &Quota, now: u64) -> u64 {
        if self.before == 0 {
            return 0;
        }
        (self.before * self.overlap(quota, now)).div_ceil(steps(quota))
    }

    fn overlap(&self, quota: &Quota, now: u64) -> u64 {
        let until_period = self.start + quota.period_micros() - now;
        // An incomplete last step counts in the overlap but not in the steps. The weight is therefore never too low.
        until_period.div_ceil(quota.grain()).min(steps(quota))
    }
}

impl Counting for Window {
    fn until_fits(&self, quota: &Quota, now: u64, cost: u64) -> u64 {
        let capacity = quota.capacity();
        if self.used(quota, now) + cost <= capacity {
            return 0;
        }
        let window = self.at(quota, now);
        match (capacity - cost).checked_sub(window.count) {
            // The cost fits once the window before has faded far enough.
            Some(room) => window.start + until_weight_fits(quota, window.before, room) - now,
            // The cost fits once the current window has ended and faded far enough.
            None => {
                let fading = until_weight_fits(quota, window.count, capacity - cost);
                window.end(quota) - now + fading
            }
        }
    }

    fn full_at(&self, quota: &Quota) -> u64 {
        match (self.before, self.count) {
            (0, 0) => 0,
            (_, count) if count > 0 && is_sliding(quota) => self.start + 2 * quota.period_micros(),
            _ => self.end(quota),
        }
    }

    fn used(&self, quota: &Quota, now: u64) -> u64 {
        let window = self.at(quota, now);
        window.weight(quota, now) + window.count
    }

    fn advance(&mut self, quota: &Quota, now: u64) {
        *self = self.at(quota, now);
    }

    fn take(&mut self, quota: &Quota, now: u64, cost: u64) -> u64 {
        if self.count == 0 && quota.window_offset().is_none() {
            self.start = now;
        }
        let taken = cost.min(most_counted(quota) - self.count);
        self.count += taken;
        taken
    }

    fn take_evenly(&mut self, quota: &Quota, now: u64, units: u64) {
        let capacity = quota.capacity();
        if is_sliding(quota) && units <= capacity {
            // A full window before fades at the rate of the quota. A debt counts from now on.
            let most = units * steps(quota) / self.overlap(quota, now);
            self.before = most.min(capacity);
        }
        self.take(quota, now, units - self.weight(quota, now));
        if quota.window_offset().is_none() {
            let end = now + quota.refill_micros(units);
            self.start = end.saturating_sub(quota.period_micros());
        }
    }

    fn refund(&mut self, quota: &Quota, _: u64, cost: u64, taken_at: u64, _: bool) {
        if taken_at >= self.start {
            self.count = self.count.saturating_sub(cost);
        } else if self.start - taken_at <= quota.period_micros() {
            self.before = self.before.saturating_sub(cost);
        }
    }

    fn encode(&self, quota: &Quota, bytes: &mut Vec<u8>) {
        push_u56(bytes, self.start);
        if is_sliding(quota) {
            push_u56(bytes, self.before);
        }
        push_u56(bytes, self.count);
    }

    fn decode(quota: &Quota, bytes: &mut &[u8], _: u64, at: u64) -> Option<Self> {
        let period = quota.period_micros();
        let start = read_u56(bytes)?;
        let (before, is_counted) = if is_sliding(quota) {
            let weights = quota.capacity().checked_mul(steps(quota))?;
            let is_aligned = start.is_multiple_of(period);
            let is_counted = is_aligned && (1..=MOST_GRAINS).contains(&weights);
            (read_u56(bytes)?, is_counted)
        } else {
            let is_window = quota.grain() == 1 && quota.window_offset().unwrap_or(0) < period;
            (0, is_window && quota.capacity() <= MOST_UNITS)
        };
        let count = read_u56(bytes)?;
        let is_sound = is_counted && start <= at && before.max(count) <= most_counted(quota);
        is_sound.then_some(Self {
            start,
            before,
            count,
        })
    }

    fn packed(&self, quota: &Quota, at: u64) -> Option<u64> {
        // The start of a window that begins with a request cannot be computed from `at`.
        quota.window_offset()?;
        let Self { before, count, .. } = self.at(quota, at);
        if !is_sliding(quota) {
            return Some(count);
        }
        Some(u64::from(u32::try_from(before).ok()?) << 32 | u64::from(u32::try_from(count).ok()?))
    }

    fn unpacked(word: u64, quota: &Quota, at: u64) -> Self {
        let new = Self {
            start: at,
            before: 0,
            count: word,
        };
        let mut window = new.at(quota, at);
        window.count = word;
        if is_sliding(quota) {
            window.before = word >> 32;
            window.count = word & 0xffff_ffff;
        }
        window
    }
}

/// Returns the closest possible count.
pub(super) fn sound(count: u64, quota: &Quota) -> u64 {
    let most = most_counted(quota);
    match is_sliding(quota) {
        true => ((count >> 32).min(most) << 32) + (count & 0xffff_ffff).min(most),
        false => count.min(most),
    }
}

fn is_sliding(quota: &Quota) -> bool {
    matches!(quota.algorithm(), Algorithm::SlidingWindow)
}

fn steps(quota: &Quota) -> u64 {
    match is_sliding(quota) {
        true => quota.period_micros() / quota.grain(),
        false => 1,
    }
}

fn most_counted(quota: &Quota) -> u64 {
    MOST_COUNTED / steps(quota)
}

fn until_weight_fits(quota: &Quota, before: u64, room: u64) -> u64 {
    if before <= room || !is_sliding(quota) {
        return 0;
    }
    // The cost fits if `before * overlap <= room * steps`, so the overlap may have this many steps.
    let overlap = room * steps(quota) / before;
    quota.period_micros() - overlap * quota.grain()
}
