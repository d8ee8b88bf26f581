//! Fixed windows: a counter per period.
//!
//! Bound: at most `units` in each window, hence at most twice that in any span of one period.

use super::Verdict;
use crate::quota::Quota;

/// The most units a window remembers as counted, debts included.
pub(crate) const MOST_COUNTED: u64 = 1 << 51;

/// Returns the start of the window at `now`, given that the last one known started at `start`.
pub(crate) fn start(quota: &Quota, start: u64, now: u64) -> u64 {
    let period = quota.period_micros();
    match quota.window_offset() {
        // The clock counts from the epoch: it cuts off the beginning of the window before the first offset.
        Some(offset) => now.saturating_sub((now % period + period - offset) % period),
        None if now - start < period => start,
        None => now,
    }
}

/// Returns the end of the window that started at `start`.
pub(super) fn end(quota: &Quota, start: u64) -> u64 {
    match quota.window_offset() {
        // The one that the epoch cut off.
        Some(offset) if start < offset => offset,
        _ => start + quota.period_micros(),
    }
}

/// Returns start and count of the window at `now`.
pub(super) fn at(quota: &Quota, old_start: u64, count: u64, now: u64) -> (u64, u64) {
    let start = start(quota, old_start, now);
    (start, if start == old_start { count } else { 0 })
}

/// Judges a cost at `now`.
pub(super) fn judge(quota: &Quota, old_start: u64, count: u64, now: u64, cost: u64) -> Verdict {
    let (start, count) = at(quota, old_start, count, now);
    if count + cost <= quota.capacity() {
        Verdict::Admit { wait: 0 }
    } else {
        Verdict::Refuse { retry: end(quota, start) - now }
    }
}

/// Counts a cost in the window at `now`.
pub(super) fn taken(quota: &Quota, start: u64, count: u64, now: u64, cost: u64) -> (u64, u64) {
    // A window that is anchored to its first request begins with it.
    let start = if count == 0 && quota.window_offset().is_none() { now } else { start };
    (start, count.saturating_add(cost).min(MOST_COUNTED))
}
