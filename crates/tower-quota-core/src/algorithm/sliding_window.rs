//! Sliding window counter: two counters and a weight.
//!
//! The estimate of the last period is `before * overlap / period + count`, where `overlap` is how much of the earlier
//! window is still less than one period ago. It is compared without division, both sides multiplied by the number of
//! steps in a window. A step is one microsecond, unless the products would not fit into 53 bits; then it is just long
//! enough that they do, and the overlap is rounded up, against the client.
//!
//! Since it weighs whole requests, a client at the limit gets up to one unit less per window than the quota says,
//! and one in every two windows of a quota of one.
//!
//! Bound: the estimate never exceeds `units` at any instant; should the earlier window's requests have come in one
//! lump, up to `2 * units` can fall into a span of one period, as in a fixed window.

use super::Verdict;
use crate::quota::{MOST_GRAINS, Quota};

/// Returns the start of the window that `now` falls into.
pub(crate) fn start(quota: &Quota, now: u64) -> u64 {
    now - now % quota.period_micros()
}

/// Returns start, previous count and count of the window at `now`.
pub(super) fn at(quota: &Quota, old_start: u64, before: u64, count: u64, now: u64) -> (u64, u64, u64) {
    let start = start(quota, now);
    match start - old_start {
        0 => (start, before, count),
        passed if passed == quota.period_micros() => (start, count, 0),
        _ => (start, 0, 0),
    }
}

/// Judges a cost at `now`, of a state that was advanced to it.
pub(super) fn judge(quota: &Quota, (start, before, count): (u64, u64, u64), now: u64, cost: u64) -> Verdict {
    if cost <= remaining(quota, (start, before, count), now) {
        return Verdict::Admit { wait: 0 };
    }
    let (period, capacity) = (quota.period_micros(), quota.capacity());
    let into = now - start;
    let retry = if count + cost <= capacity {
        // The earlier window has to fade far enough.
        first_light_enough(quota, before, capacity - count - cost) - into
    } else {
        // This window has to end, become the earlier one, and fade far enough.
        period - into + first_light_enough(quota, count, capacity - cost)
    };
    Verdict::Refuse { retry }
}

/// Returns when both windows are over; 0 if nothing was counted in them.
pub(super) fn full_at(quota: &Quota, start: u64, before: u64, count: u64) -> u64 {
    match (before, count) {
        (0, 0) => 0,
        (_, 0) => start + quota.period_micros(),
        _ => start + 2 * quota.period_micros(),
    }
}

/// Returns the whole units left at `now`.
pub(super) fn remaining(quota: &Quota, (start, before, count): (u64, u64, u64), now: u64) -> u64 {
    let steps = steps(quota);
    (quota.capacity() * steps).saturating_sub(before * overlap(quota, start, now) + count * steps) / steps
}

/// Returns the units that the estimate comes to at `now`, rounded up.
pub(super) fn estimate(quota: &Quota, (start, before, count): (u64, u64, u64), now: u64) -> u64 {
    let steps = steps(quota);
    (before * overlap(quota, start, now) + count * steps).div_ceil(steps)
}

/// Counts a cost in the current window.
pub(super) fn taken(quota: &Quota, count: u64, cost: u64) -> u64 {
    count.saturating_add(cost).min(most_counted(quota))
}

/// Returns the most units that a window counts, debts included: at least twice the capacity, and so few that the weighted
/// sums stay below 2^53.
pub(crate) const fn most_counted(quota: &Quota) -> u64 {
    2 * MOST_GRAINS / steps(quota)
}

/// Returns the steps of the earlier window that are less than a period ago. Where a period is no whole number of steps, the
/// last one is left out of the whole and its part of the overlap is not: the weight is never less than the true one,
/// nor more than all.
fn overlap(quota: &Quota, start: u64, now: u64) -> u64 {
    (start + quota.period_micros() - now).div_ceil(quota.grain()).min(steps(quota))
}

/// Returns how far into a window, in microseconds, an earlier count of `before` first weighs at most `room` units.
fn first_light_enough(quota: &Quota, before: u64, room: u64) -> u64 {
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
