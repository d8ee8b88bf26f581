//! Token bucket, GCRA and leaky bucket share one state, the instant at which the bucket is full again.
//!
//! The arrival time of GCRA is `used / refill` microseconds ahead. A leaky bucket gives the next turn at that time.
//!
//! Bound: at most `burst + t * units / period` units in any `t` microseconds.

use super::counting::Counting;
use super::low_marks::LowMarks;
use crate::bytes::{push_u56, read_u56};
use crate::outcome::Outcome;
use crate::quota::{Algorithm, MOST_GRAINS, MOST_USED, Quota};

pub(crate) const fn longest_wait(quota: &Quota) -> u64 {
    match quota.refill() {
        0 => 0,
        refill => (MOST_USED - quota.capacity() * quota.grain()) / refill,
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bucket {
    full_at: u64,
    rest: u64,
    marks: LowMarks,
}

impl Bucket {
    pub(crate) fn new(quota: &Quota, used: u64, now: u64) -> Self {
        match until_back(quota.refill(), used) {
            0 => Self::default(),
            until_full => Self {
                full_at: now + until_full,
                rest: until_full * quota.refill() - used,
                marks: LowMarks::default(),
            },
        }
    }

    /// Takes a cost, up to `most` used grains. Returns the taken grains.
    pub(super) fn charge(&mut self, quota: &Quota, now: u64, cost: u64, most: u64) -> u64 {
        let used = self.used(quota, now);
        self.marks.note(used);
        let free = most.saturating_sub(used);
        let taken = cost.saturating_mul(quota.grain()).min(free);
        self.set(quota, used + taken, now);
        taken
    }

    fn set(&mut self, quota: &Quota, used: u64, now: u64) {
        let marks = core::mem::take(&mut self.marks);
        *self = Self::new(quota, used, now);
        if used > 0 {
            self.marks = marks;
        }
    }

    pub(super) fn watch(&mut self, quota: &Quota, now: u64) {
        if self.full_at > now {
            self.marks.add(now, self.used(quota, now));
        }
    }

    pub(super) const fn is_watched(&self) -> bool {
        !self.marks.is_empty()
    }
}

impl Counting for Bucket {
    fn until_fits(&self, quota: &Quota, now: u64, cost: u64) -> u64 {
        until_fits(quota, self.used(quota, now), cost)
    }

    fn full_at(&self, _: &Quota) -> u64 {
        self.full_at
    }

    fn used(&self, quota: &Quota, now: u64) -> u64 {
        let until_full = self.full_at.saturating_sub(now);
        let used = until_full.saturating_mul(quota.refill());
        used.saturating_sub(self.rest).min(MOST_USED)
    }

    fn take(&mut self, quota: &Quota, now: u64, cost: u64) -> u64 {
        self.charge(quota, now, cost, MOST_USED) / quota.grain()
    }

    fn refund(&mut self, quota: &Quota, now: u64, cost: u64, taken_at: u64, is_prepared: bool) {
        let used = self.used(quota, now);
        self.marks.note(used);
        let least = self.marks.since(taken_at);
        // The charge took no more grains than a bucket counts.
        let charged = cost.saturating_mul(quota.grain()).min(MOST_USED);
        // Do not give back the units that time has refilled since.
        let refilled = now.saturating_sub(taken_at).saturating_mul(quota.refill());
        let unrefilled = match least {
            // The bucket was full since the charge, or another quota counted at an unknown rate.
            None if is_prepared => 0,
            _ => charged.saturating_sub(refilled),
        };
        let back = charged.min(least.unwrap_or(0).max(unrefilled)).min(used);
        self.marks.refund(taken_at, back);
        self.set(quota, used - back, now);
    }

    fn heap_bytes(&self) -> usize {
        self.marks.heap_bytes()
    }

    fn encode(&self, quota: &Quota, bytes: &mut Vec<u8>) {
        if quota.refill() > 1 {
            push_u56(bytes, self.rest);
        }
        self.marks.encode(bytes);
    }

    fn decode(quota: &Quota, bytes: &mut &[u8], full_at: u64, at: u64) -> Option<Self> {
        let (refill, full) = (quota.refill(), quota.capacity().checked_mul(quota.grain())?);
        let rest = if refill > 1 { read_u56(bytes)? } else { 0 };
        let until_full = full_at.saturating_sub(at);
        let used = until_full.checked_mul(refill)?.checked_sub(rest)?;
        let marks = LowMarks::decode(bytes, at)?;
        let is_sound = (refill..=MOST_GRAINS).contains(&full) && rest < refill && used <= MOST_USED;
        is_sound.then_some(Self {
            full_at,
            rest,
            marks,
        })
    }

    fn packed(&self, quota: &Quota, at: u64) -> Option<u64> {
        (!self.is_watched()).then(|| self.used(quota, at))
    }

    fn unpacked(word: u64, quota: &Quota, at: u64) -> Self {
        Self::new(quota, word, at)
    }
}

pub(super) fn judge(quota: &Quota, used: u64, cost: u64, max_wait: u64) -> Outcome {
    let until_fits = until_fits(quota, used, cost);
    let (until_start, retry) = if quota.algorithm() == Algorithm::LeakyBucket {
        // The queue must have a place now, and the turn must come soon enough.
        let turn = used.div_ceil(quota.refill());
        (turn, until_fits.max(turn.saturating_sub(max_wait)))
    } else {
        (until_fits, until_fits.saturating_sub(max_wait))
    };
    match retry {
        0 => Outcome::after(until_start),
        retry => Outcome::refuse_for(retry),
    }
}

pub(crate) fn outcome(quota: &Quota, used: u64, cost: u64) -> Outcome {
    match cost {
        0 => Outcome::Allow,
        cost if cost > quota.capacity() => Outcome::Never,
        cost => judge(quota, used, cost, 0),
    }
}

const fn until_fits(quota: &Quota, used: u64, cost: u64) -> u64 {
    // The sums stay below 2^53, because Lua computes the same values in doubles.
    let missing = (used + cost * quota.grain()).saturating_sub(quota.capacity() * quota.grain());
    until_back(quota.refill(), missing)
}

pub(crate) fn refilled(quota: &Quota, used: u64, elapsed: u64) -> u64 {
    used.saturating_sub(elapsed.saturating_mul(quota.refill()))
}

pub(crate) const fn until_back(refill: u64, used: u64) -> u64 {
    match refill {
        0 => 0,
        // Most quotas refill one grain per microsecond. Skip the division, which takes a tenth of a
        // refusal's time.
        1 => used,
        refill => used.div_ceil(refill),
    }
}
