//! Token bucket, GCRA and leaky bucket share one state.
//!
//! `used` is the number of grains that were taken and are not back at some instant. A token bucket holds
//! `capacity - used` of them; GCRA's theoretical arrival time lies `used / refill` microseconds ahead; a leaky bucket's
//! queue holds `used`, and the next turn comes when they have drained. Time only takes `refill` grains a microsecond
//! off `used`, down to 0. The state is therefore one instant: the time at which the bucket is full again.
//!
//! Bound, for a token bucket and GCRA: in any span of `t` microseconds at most `burst + t * units / period` units are
//! admitted. A leaky bucket admits the same, and lets them start evenly spaced.

use super::counting::{Counting, Refund};
use super::lows::Lows;
use crate::bytes::{push_u56, read_u56};
use crate::outcome::Outcome;
use crate::quota::{Algorithm, MOST_USED, Quota};

/// Returns the longest wait that a bucket can promise, in microseconds.
///
/// A longer one would need more than [`MOST_USED`] grains.
pub(crate) const fn longest_wait(quota: &Quota) -> u64 {
    match quota.refill() {
        0 => 0,
        refill => (MOST_USED - quota.capacity() * quota.grain()) / refill,
    }
}

/// The state of a bucket: the instant at which it is full again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bucket {
    /// The instant from which nothing is used, in microseconds since the epoch.
    pub(crate) full_at: u64,
    /// Grains that come back in the last microsecond before that and are not used: less than `refill`.
    pub(crate) rest: u64,
    /// The least used since some charges, where these may be refunded.
    pub(super) lows: Lows,
}

impl Bucket {
    /// A full bucket.
    pub(crate) const FULL: Self = Self {
        full_at: 0,
        rest: 0,
        lows: Lows::NONE,
    };

    /// Makes the state of a bucket with `used` grains taken at `now`.
    #[inline]
    pub(crate) const fn new(quota: &Quota, used: u64, now: u64) -> Self {
        if used == 0 || quota.refill() == 0 {
            return Self::FULL;
        }
        let until_full = used.div_ceil(quota.refill());
        Self {
            full_at: now + until_full,
            rest: until_full * quota.refill() - used,
            lows: Lows::NONE,
        }
    }

    /// Returns the grains used at `now`, at most as many as a bucket counts.
    #[inline]
    pub(crate) const fn used_grains(&self, quota: &Quota, now: u64) -> u64 {
        let used = self
            .full_at
            .saturating_sub(now)
            .saturating_mul(quota.refill())
            .saturating_sub(self.rest);
        if used < MOST_USED { used } else { MOST_USED }
    }

    /// Replaces the grains used at `now` by the result of a function.
    pub(crate) fn change(&mut self, quota: &Quota, now: u64, change: impl FnOnce(u64) -> u64) {
        let used = self.used_grains(quota, now);
        self.lows.note(used);
        self.set(quota, change(used), now);
    }

    fn set(&mut self, quota: &Quota, used: u64, now: u64) {
        let lows = core::mem::take(&mut self.lows);
        *self = Self::new(quota, used, now);
        if *self != Self::FULL {
            self.lows = lows;
        }
    }

    /// Marks what is used after a charge, which can then be refunded exactly.
    pub(crate) fn watch(&mut self, quota: &Quota, now: u64) {
        if self.full_at > now {
            self.lows.add(now, self.used_grains(quota, now));
        }
    }
}

impl Counting for Bucket {
    fn judge(&self, quota: &Quota, now: u64, cost: u64, max_wait: u64) -> Outcome {
        judge(quota, self.used_grains(quota, now), cost, max_wait)
    }

    fn remaining(&self, quota: &Quota, now: u64) -> u64 {
        remaining(quota, self.used_grains(quota, now))
    }

    fn full_at(&self, _: &Quota) -> u64 {
        self.full_at
    }

    fn used(&self, quota: &Quota, now: u64) -> (u64, u64) {
        (self.used_grains(quota, now), quota.grain())
    }

    /// Does nothing: the state is valid at any instant.
    fn advance(&mut self, _: &Quota, _: u64) {}

    fn take(&mut self, quota: &Quota, now: u64, cost: u64) -> u64 {
        let mut grains = 0;
        self.change(quota, now, |used| {
            grains = taken(quota, used, cost) - used;
            used + grains
        });
        grains / quota.grain()
    }

    /// Gives back a charge.
    ///
    /// All of it comes back if no less was used in the meantime. Otherwise time has refilled a part of it, and only
    /// the rest comes back.
    fn refund(
        &mut self,
        quota: &Quota,
        now: u64,
        Refund {
            cost,
            taken_at,
            is_prepared,
        }: Refund,
    ) {
        let used = self.used_grains(quota, now);
        self.lows.note(used);
        let least = self.lows.since(taken_at);
        // No more than a bucket counts was ever taken.
        let charged = cost.saturating_mul(quota.grain()).min(MOST_USED);
        let refilled = now.saturating_sub(taken_at).saturating_mul(quota.refill());
        let unrefilled = match least {
            // It was full since, or was counted by another quota at an unknown rate.
            None if is_prepared => 0,
            _ => charged.saturating_sub(refilled),
        };
        let back = charged.min(least.unwrap_or(0).max(unrefilled)).min(used);
        self.lows.refund(taken_at, back);
        self.set(quota, used - back, now);
    }

    fn heap_bytes(&self) -> usize {
        self.lows.heap_bytes()
    }

    fn encode(&self, quota: &Quota, bytes: &mut Vec<u8>) {
        if quota.refill() > 1 {
            push_u56(bytes, self.rest);
        }
        self.lows.encode(bytes);
    }

    /// Returns `None` for a bucket that records its low marks.
    fn packed(&self, quota: &Quota, at: u64) -> Option<u64> {
        self.lows.are_none().then(|| self.used_grains(quota, at))
    }

    fn unpacked(word: u64, quota: &Quota, at: u64) -> Self {
        Self::new(quota, word, at)
    }

    fn fresh(_: &Quota, _: u64) -> Self {
        Self::FULL
    }

    fn decode(quota: &Quota, bytes: &mut &[u8], full_at: u64, at: u64) -> Option<Self> {
        let rest = if quota.refill() > 1 {
            read_u56(bytes)?
        } else {
            0
        };
        let used = full_at
            .saturating_sub(at)
            .checked_mul(quota.refill())?
            .checked_sub(rest)?;
        let lows = Lows::decode(bytes, at)?;
        (rest < quota.refill() && used <= MOST_USED).then_some(Self {
            full_at,
            rest,
            lows,
        })
    }
}

/// Returns the grains still used after this many microseconds.
#[inline]
pub(crate) fn refilled(quota: &Quota, used: u64, elapsed: u64) -> u64 {
    used.saturating_sub(elapsed.saturating_mul(quota.refill()))
}

/// Returns the microseconds until a cost that is not above the capacity fits.
#[inline]
pub(crate) const fn until_fits(quota: &Quota, used: u64, cost: u64) -> u64 {
    let missing = (used + cost * quota.grain()).saturating_sub(quota.capacity() * quota.grain());
    until_back(quota.refill(), missing)
}

/// Judges any cost, of a request that would not wait, when `used` grains are taken.
pub(crate) fn outcome(quota: &Quota, used: u64, cost: u64) -> Outcome {
    match cost {
        0 => Outcome::Allow,
        cost if cost > quota.capacity() => Outcome::Never,
        cost => judge(quota, used, cost, 0),
    }
}

/// Judges a cost from 1 to the capacity when `used` grains are taken.
pub(crate) fn judge(quota: &Quota, used: u64, cost: u64, max_wait: u64) -> Outcome {
    let until_fits = until_fits(quota, used, cost);
    if quota.algorithm() == Algorithm::LeakyBucket {
        // There must be a place in the queue now, and the turn must come soon enough.
        let until_turn = used.div_ceil(quota.refill());
        match until_fits.max(until_turn.saturating_sub(max_wait)) {
            0 => Outcome::after(until_turn),
            retry => Outcome::refuse_for(retry),
        }
    } else {
        match until_fits.saturating_sub(max_wait) {
            0 => Outcome::after(until_fits),
            retry => Outcome::refuse_for(retry),
        }
    }
}

/// Returns the units left, rounded down.
#[inline]
pub(crate) const fn remaining(quota: &Quota, used: u64) -> u64 {
    units_left(quota.capacity(), quota.grain(), used)
}

/// Returns the units left of a capacity, rounded down; a unit is `grain` grains.
#[inline]
pub(crate) const fn units_left(capacity: u64, grain: u64, used: u64) -> u64 {
    match grain {
        0 => 0,
        grain => capacity.saturating_sub(used.div_ceil(grain)),
    }
}

/// Returns the microseconds until `used` grains are back, at `refill` grains a microsecond.
#[inline]
pub(crate) const fn until_back(refill: u64, used: u64) -> u64 {
    match refill {
        0 => 0,
        // The usual case: the units of a period divide its microseconds. A division takes a tenth of a refusal's time.
        1 => used,
        refill => used.div_ceil(refill),
    }
}

/// Returns whether less than one unit is left.
#[inline]
pub(crate) const fn is_spent(quota: &Quota, used: u64) -> bool {
    used > (quota.capacity() - 1) * quota.grain()
}

/// Returns the grains used with a cost, into debt if need be.
pub(super) fn taken(quota: &Quota, used: u64, cost: u64) -> u64 {
    used.saturating_add(cost.saturating_mul(quota.grain()))
        .min(MOST_USED)
}

/// Returns the grains used with a cost, but not into debt.
pub(super) fn penalised(quota: &Quota, used: u64, cost: u64) -> u64 {
    let empty = quota.capacity() * quota.grain();
    used.max(taken(quota, used, cost).min(empty))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spent_bucket_has_nothing_left() {
        for quota in [
            Quota::per_minute(3),
            Quota::per_second(7).burst(2),
            Quota::per_second(1_000).burst(1),
        ] {
            let full = quota.capacity() * quota.grain();
            for used in (0..=2 * full)
                .step_by((full / 600).max(1) as usize)
                .chain([full - quota.grain(), full])
            {
                assert_eq!(
                    is_spent(&quota, used),
                    remaining(&quota, used) == 0,
                    "{used} of {full}"
                );
            }
        }
    }
}
