//! Token bucket, GCRA and leaky bucket share one state.
//!
//! `used` is the number of grains that the bucket has not refilled yet. A token bucket holds `capacity - used` grains.
//! GCRA's theoretical arrival time is `used / refill` microseconds ahead. The queue of a leaky bucket holds `used`
//! grains, and the next turn comes when they have drained. Time only lowers `used`, by `refill` grains a microsecond, so
//! the state is one instant: the time at which the bucket is full again.
//!
//! Bound: a token bucket and GCRA admit at most `burst + t * units / period` units in any span of `t` microseconds. A leaky
//! bucket admits the same, and spaces their starts evenly.

use super::counting::{Counting, Refund};
use super::lows::Lows;
use crate::bytes::{push_u56, read_u56};
use crate::outcome::Outcome;
use crate::quota::{Algorithm, MOST_USED, Quota};

/// Returns the longest wait that a bucket can promise, in microseconds.
pub(crate) const fn longest_wait(quota: &Quota) -> u64 {
    match quota.refill() {
        0 => 0,
        refill => (MOST_USED - quota.capacity() * quota.grain()) / refill,
    }
}

/// The state of a bucket: the instant at which it is full again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bucket {
    /// The instant at which the bucket is full again, in microseconds since the epoch.
    pub(crate) full_at: u64,
    /// The surplus of the last refill before `full_at`, in grains. Less than `refill`.
    pub(crate) rest: u64,
    pub(super) lows: Lows,
}

impl Bucket {
    pub(crate) const FULL: Self = Self {
        full_at: 0,
        rest: 0,
        lows: Lows::NONE,
    };

    /// Makes a bucket with `used` grains used at `now`.
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

    /// Returns the used grains at `now`, at most [`MOST_USED`].
    pub(crate) const fn used_grains(&self, quota: &Quota, now: u64) -> u64 {
        let used = self
            .full_at
            .saturating_sub(now)
            .saturating_mul(quota.refill())
            .saturating_sub(self.rest);
        if used < MOST_USED { used } else { MOST_USED }
    }

    /// Changes the used grains at `now`.
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

    /// Marks a charge, so that its refund is exact.
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

    fn full_at(&self, _: &Quota) -> u64 {
        self.full_at
    }

    fn used(&self, quota: &Quota, now: u64) -> (u64, u64) {
        (self.used_grains(quota, now), quota.grain())
    }

    fn advance(&mut self, _: &Quota, _: u64) {}

    fn take(&mut self, quota: &Quota, now: u64, cost: u64) -> u64 {
        let mut grains = 0;
        self.change(quota, now, |used| {
            grains = taken(quota, used, cost) - used;
            used + grains
        });
        grains / quota.grain()
    }

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
        // The charge took no more than a bucket counts.
        let charged = cost.saturating_mul(quota.grain()).min(MOST_USED);
        let refilled = now.saturating_sub(taken_at).saturating_mul(quota.refill());
        let unrefilled = match least {
            // The bucket was full since the charge, or another quota counted it at an unknown rate.
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

    /// Returns `None` for a bucket with marks.
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

/// Returns the used grains after this many microseconds.
pub(crate) fn refilled(quota: &Quota, used: u64, elapsed: u64) -> u64 {
    used.saturating_sub(elapsed.saturating_mul(quota.refill()))
}

/// Returns the microseconds until a cost that is not above the capacity fits.
pub(crate) const fn until_fits(quota: &Quota, used: u64, cost: u64) -> u64 {
    let missing = (used + cost * quota.grain()).saturating_sub(quota.capacity() * quota.grain());
    until_back(quota.refill(), missing)
}

/// Judges any cost of a request that does not wait.
pub(crate) fn outcome(quota: &Quota, used: u64, cost: u64) -> Outcome {
    match cost {
        0 => Outcome::Allow,
        cost if cost > quota.capacity() => Outcome::Never,
        cost => judge(quota, used, cost, 0),
    }
}

/// Judges a cost from 1 to the capacity.
pub(crate) fn judge(quota: &Quota, used: u64, cost: u64, max_wait: u64) -> Outcome {
    let until_fits = until_fits(quota, used, cost);
    if quota.algorithm() == Algorithm::LeakyBucket {
        // The queue must have a place now, and the turn must come soon enough.
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

/// Returns the remaining units of a capacity, rounded down. A unit has `grain` grains.
pub(crate) const fn units_left(capacity: u64, grain: u64, used: u64) -> u64 {
    match grain {
        0 => 0,
        grain => capacity.saturating_sub(used.div_ceil(grain)),
    }
}

/// Returns the microseconds until `used` grains are refilled.
pub(crate) const fn until_back(refill: u64, used: u64) -> u64 {
    match refill {
        0 => 0,
        // The usual case. A division takes a tenth of a refusal's time.
        1 => used,
        refill => used.div_ceil(refill),
    }
}

/// Returns the used grains with a cost, into debt if the cost does not fit.
pub(super) fn taken(quota: &Quota, used: u64, cost: u64) -> u64 {
    used.saturating_add(cost.saturating_mul(quota.grain()))
        .min(MOST_USED)
}

/// Returns the used grains with a cost, but not into debt.
pub(super) fn penalised(quota: &Quota, used: u64, cost: u64) -> u64 {
    let empty = quota.capacity() * quota.grain();
    used.max(taken(quota, used, cost).min(empty))
}
