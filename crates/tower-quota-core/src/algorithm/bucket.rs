//! Token bucket, GCRA and leaky bucket: one number, read from both ends.
//!
//! `used` counts the grains that were taken and are not back yet, as of some instant. A token bucket holds
//! `capacity - used` of them; GCRA's theoretical arrival time lies `used / refill` microseconds ahead; a leaky bucket's
//! queue holds `used` and the next turn comes when they have drained. Time only ever does one thing: it takes
//! `refill` grains a microsecond off `used`, down to 0.
//!
//! Bound, for a token bucket and GCRA: in any span of `t` microseconds at most `burst + t * units / period` units are
//! admitted. A leaky bucket admits the same, and lets them start evenly spaced.

use super::Verdict;
use crate::quota::{Algorithm, MOST_GRAINS, Quota};

/// The most grains a bucket remembers as taken, debts included.
const MOST_USED: u64 = 2 * MOST_GRAINS;

/// The longest wait, in microseconds, that can be promised without counting beyond [`MOST_USED`].
pub(crate) const fn longest_wait(quota: &Quota) -> u64 {
    match quota.refill() {
        0 => 0,
        refill => (MOST_USED - quota.capacity() * quota.grain()) / refill,
    }
}

#[inline]
pub(crate) fn refilled(quota: &Quota, used: u64, elapsed: u64) -> u64 {
    used.saturating_sub(elapsed.saturating_mul(quota.refill()))
}

/// Whether a token bucket or GCRA admits this many units at once.
#[inline]
pub(crate) const fn holds(quota: &Quota, used: u64, cost: u64) -> bool {
    cost <= quota.capacity() && used + cost * quota.grain() <= quota.capacity() * quota.grain()
}

/// Whether it refuses so many units now, and will not for ever.
pub(crate) const fn refuses(quota: &Quota, used: u64, cost: u64) -> bool {
    cost <= quota.capacity() && !holds(quota, used, cost)
}

/// Microseconds until the capacity covers a cost that is not above it.
#[inline]
pub(crate) const fn until_fits(quota: &Quota, used: u64, cost: u64) -> u64 {
    let missing = (used + cost * quota.grain()).saturating_sub(quota.capacity() * quota.grain());
    until_back(quota.refill(), missing)
}

pub(super) fn judge(quota: &Quota, used: u64, cost: u64, patience: u64) -> Verdict {
    let until_fits = until_fits(quota, used, cost);
    if quota.algorithm() == Algorithm::LeakyBucket {
        // There must be a place in the queue now, and the turn must come soon enough.
        let until_turn = used.div_ceil(quota.refill());
        match until_fits.max(until_turn.saturating_sub(patience)) {
            0 => Verdict::Admit { wait: until_turn },
            retry => Verdict::Refuse { retry },
        }
    } else {
        match until_fits.saturating_sub(patience) {
            0 => Verdict::Admit { wait: until_fits },
            retry => Verdict::Refuse { retry },
        }
    }
}

pub(super) fn left(quota: &Quota, used: u64) -> (u64, u64) {
    (remaining(quota, used), reset(quota, used))
}

/// Whole units left.
#[inline]
pub(crate) const fn remaining(quota: &Quota, used: u64) -> u64 {
    whole_units(quota.capacity(), quota.grain(), used)
}

/// Whole units left of a capacity, counted in such grains.
#[inline]
pub(crate) const fn whole_units(capacity: u64, grain: u64, used: u64) -> u64 {
    match grain {
        0 => 0,
        grain => capacity.saturating_sub(used.div_ceil(grain)),
    }
}

/// Microseconds until all are back.
#[inline]
pub(crate) const fn reset(quota: &Quota, used: u64) -> u64 {
    until_back(quota.refill(), used)
}

/// Microseconds until so many grains are back, of which so many come back in each.
#[inline]
pub(crate) const fn until_back(refill: u64, used: u64) -> u64 {
    match refill {
        0 => 0,
        refill => used.div_ceil(refill),
    }
}

/// Whether no whole unit is left.
#[inline]
pub(crate) const fn is_spent(quota: &Quota, used: u64) -> bool {
    used > (quota.capacity() - 1) * quota.grain()
}

pub(super) fn taken(quota: &Quota, used: u64, cost: u64) -> u64 {
    used.saturating_add(cost.saturating_mul(quota.grain())).min(MOST_USED)
}

pub(super) fn penalised(quota: &Quota, used: u64, cost: u64) -> u64 {
    let empty = quota.capacity() * quota.grain();
    used.max(taken(quota, used, cost).min(empty))
}

/// How long until a debt is paid, in microseconds; 0 where there is none.
pub(super) fn until_paid(quota: &Quota, used: u64) -> u64 {
    used.saturating_sub(quota.capacity() * quota.grain()).div_ceil(quota.refill())
}

/// One unit more, down to so many units of debt.
pub(super) fn struck(quota: &Quota, used: u64, most_debt: u64) -> u64 {
    let deepest = (quota.capacity() + most_debt) * quota.grain();
    used.max((used + quota.grain()).min(deepest))
}

pub(super) fn given_back(quota: &Quota, used: u64, cost: u64) -> u64 {
    used.saturating_sub(cost.saturating_mul(quota.grain()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spent_has_nothing_left_and_what_refuses_does_not_hold() {
        for quota in [Quota::per_minute(3), Quota::per_second(7).burst(2), Quota::per_second(1_000).burst(1)] {
            let full = quota.capacity() * quota.grain();
            for used in (0..=2 * full).step_by((full / 600).max(1) as usize).chain([full - quota.grain(), full]) {
                assert_eq!(is_spent(&quota, used), remaining(&quota, used) == 0, "{used} of {full}");
                for cost in 1..=quota.capacity() + 1 {
                    let verdict = judge(&quota, used, cost, 0);
                    let is_refused = cost <= quota.capacity() && matches!(verdict, Verdict::Refuse { .. });
                    assert_eq!(refuses(&quota, used, cost), is_refused, "{used} of {full}, {cost}");
                    let is_held = cost <= quota.capacity() && verdict == Verdict::Admit { wait: 0 };
                    assert_eq!(holds(&quota, used, cost), is_held, "{used} of {full}, {cost}");
                }
            }
        }
    }
}
