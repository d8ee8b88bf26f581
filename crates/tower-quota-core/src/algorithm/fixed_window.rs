//! Fixed window: one counter per period.
//!
//! Bound: at most `units` in each window, and at most twice as many in any span of one period.

use super::counting::Counting;
use crate::bytes::{push_u56, read_u56};
use crate::quota::{MOST_UNITS, Quota};

/// The most units that a window counts, debts included.
pub const MOST_COUNTED: u64 = 1 << 51;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FixedWindow {
    /// The start of the window, in microseconds since the epoch.
    start: u64,
    count: u64,
}

impl FixedWindow {
    /// Returns the window at `now`.
    fn at(self, quota: &Quota, now: u64) -> Self {
        let period = quota.period_micros();
        let start = match quota.window_offset() {
            // The first window begins before the epoch, where the clock starts. It is shorter.
            Some(offset) => now.saturating_sub((now % period + period - offset) % period),
            None if now - self.start < period => self.start,
            None => now,
        };
        let count = if start == self.start { self.count } else { 0 };
        Self { start, count }
    }

    fn end(self, quota: &Quota) -> u64 {
        match quota.window_offset() {
            // The first window, which begins before the epoch.
            Some(offset) if self.start < offset => offset,
            _ => self.start + quota.period_micros(),
        }
    }
}

impl Counting for FixedWindow {
    fn until_fits(&self, quota: &Quota, now: u64, cost: u64) -> u64 {
        let window = self.at(quota, now);
        match window.count + cost <= quota.capacity() {
            true => 0,
            false => window.end(quota) - now,
        }
    }

    fn full_at(&self, quota: &Quota) -> u64 {
        match self.count {
            0 => 0,
            _ => self.end(quota),
        }
    }

    fn used(&self, quota: &Quota, now: u64) -> u64 {
        self.at(quota, now).count
    }

    fn advance(&mut self, quota: &Quota, now: u64) {
        *self = self.at(quota, now);
    }

    fn take(&mut self, quota: &Quota, now: u64, cost: u64) -> u64 {
        if self.count == 0 && quota.window_offset().is_none() {
            self.start = now;
        }
        let taken = cost.min(MOST_COUNTED - self.count);
        self.count += taken;
        taken
    }

    fn refund(&mut self, _: &Quota, _: u64, cost: u64, taken_at: u64, _: bool) {
        if taken_at >= self.start {
            self.count = self.count.saturating_sub(cost);
        }
    }

    fn encode(&self, _: &Quota, bytes: &mut Vec<u8>) {
        push_u56(bytes, self.start);
        push_u56(bytes, self.count);
    }

    fn decode(quota: &Quota, bytes: &mut &[u8], _: u64, at: u64) -> Option<Self> {
        let is_counted = quota.grain() == 1
            && quota.capacity() <= MOST_UNITS
            && quota.window_offset().unwrap_or(0) < quota.period_micros();
        let (start, count) = (read_u56(bytes)?, read_u56(bytes)?);
        let is_sound = is_counted && start <= at && count <= MOST_COUNTED;
        is_sound.then_some(Self { start, count })
    }

    fn packed(&self, quota: &Quota, at: u64) -> Option<u64> {
        // The start of a window that begins with a request cannot be computed from `at`.
        quota.window_offset()?;
        Some(self.used(quota, at))
    }

    fn unpacked(word: u64, quota: &Quota, at: u64) -> Self {
        let window = Self {
            start: at,
            count: 0,
        };
        Self {
            count: word,
            ..window.at(quota, at)
        }
    }
}
