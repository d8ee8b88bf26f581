//! Fixed windows: a counter per period.
//!
//! Bound: at most `units` in each window, hence at most twice that in any span of one period.

use super::counting::{Counting, Refund};
use crate::bytes::{push_u56, read_u56};
use crate::outcome::Outcome;
use crate::quota::Quota;

/// The most units a window remembers as counted, debts included.
pub const MOST_COUNTED: u64 = 1 << 51;

/// The counter of a fixed window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FixedWindow {
    /// The start of the window, in microseconds since the epoch.
    start: u64,
    /// Units counted in it.
    count: u64,
}

/// Returns the start of the window at `now`, given that the last one known started at `start`.
fn start(quota: &Quota, start: u64, now: u64) -> u64 {
    let period = quota.period_micros();
    match quota.window_offset() {
        // The clock counts from the epoch: it cuts off the beginning of the window before the first offset.
        Some(offset) => now.saturating_sub((now % period + period - offset) % period),
        None if now - start < period => start,
        None => now,
    }
}

/// Returns the end of the window that started at `start`.
fn end(quota: &Quota, start: u64) -> u64 {
    match quota.window_offset() {
        // The window that the epoch cut off.
        Some(offset) if start < offset => offset,
        _ => start + quota.period_micros(),
    }
}

impl FixedWindow {
    /// Returns the window at `now`.
    fn at(self, quota: &Quota, now: u64) -> Self {
        let start = start(quota, self.start, now);
        Self {
            start,
            count: if start == self.start { self.count } else { 0 },
        }
    }
}

impl Counting for FixedWindow {
    fn judge(&self, quota: &Quota, now: u64, cost: u64, _: u64) -> Outcome {
        let Self { start, count } = self.at(quota, now);
        match count + cost <= quota.capacity() {
            true => Outcome::Allow,
            false => Outcome::refuse_for(end(quota, start) - now),
        }
    }

    fn full_at(&self, quota: &Quota) -> u64 {
        if self.count == 0 {
            0
        } else {
            end(quota, self.start)
        }
    }

    fn used(&self, quota: &Quota, now: u64) -> (u64, u64) {
        (self.at(quota, now).count, 1)
    }

    fn advance(&mut self, quota: &Quota, now: u64) {
        *self = self.at(quota, now);
    }

    fn take(&mut self, quota: &Quota, now: u64, cost: u64) -> u64 {
        if self.count == 0 && quota.window_offset().is_none() {
            // A window that is anchored to its first request begins with it.
            self.start = now;
        }
        let before = self.count;
        self.count = before.saturating_add(cost).min(MOST_COUNTED);
        self.count - before
    }

    fn refund(&mut self, _: &Quota, _: u64, refund: Refund) {
        if refund.taken_at >= self.start {
            self.count = self.count.saturating_sub(refund.cost);
        }
    }

    fn encode(&self, _: &Quota, bytes: &mut Vec<u8>) {
        push_u56(bytes, self.start);
        push_u56(bytes, self.count);
    }

    /// Returns `None` for a window that began with its first request: its start cannot be derived from `at`.
    fn packed(&self, quota: &Quota, at: u64) -> Option<u64> {
        quota.window_offset()?;
        Some(self.at(quota, at).count)
    }

    fn unpacked(word: u64, quota: &Quota, at: u64) -> Self {
        Self {
            count: word,
            ..Self::fresh(quota, at)
        }
    }

    fn fresh(quota: &Quota, now: u64) -> Self {
        Self {
            start: start(quota, now, now),
            count: 0,
        }
    }

    fn decode(_: &Quota, bytes: &mut &[u8], _: u64, at: u64) -> Option<Self> {
        let (start, count) = (read_u56(bytes)?, read_u56(bytes)?);
        (start <= at && count <= MOST_COUNTED).then_some(Self { start, count })
    }
}
