//! Converts a state to another quota.
//!
//! Windows of the same period keep the used units, so that a raised limit helps at once. Holds keep their units and
//! expiry. All other states keep the remaining units up to the new capacity, or the debt. A conversion rounds
//! against the client, by less than a grain of the new quota, so two versions of your service may count a client in
//! turn.
//!
//! The used units of a converted log or sliding window come back one after the other, at the new rate. The used units
//! of a converted fixed window come back at its end. A refusal leaves the state of another algorithm or period alone if
//! the units come back sooner there, so no conversion of a refused client moves the next admission back. Two versions
//! in turn therefore lock no client out, and admit at most what both versions admit. A client far over both quotas gets
//! at least the rate of the slower version. A client who polls at about this rate may get only half of it, because the
//! request after a conversion may come just before a unit.
//!
//! Two versions of a bucket admit at most `larger + refill + n * (larger - smaller)` units together. `larger` and
//! `smaller` are their capacities. `n` counts how often the larger version finds a new client because the bucket
//! was full, and not stored, under the smaller version. The same number of units is added for other algorithms.
//!
//! A stored bucket does not say whether it is a queue. If a queue becomes longer, the next turn moves back by the
//! added places.

use super::{Bucket, State};
use crate::quota::{MOST_USED, Quota};

impl State {
    pub(crate) fn convert(&self, old: &Quota, new: &Quota, now: u64) -> Self {
        let mut state = self.clone();
        state.advance(old, now);
        let used = converted(state.used(old, now), old, new);
        if new.algorithm().is_bucket() {
            return Self::Bucket(Bucket::new(new, used, now));
        }
        let mut fresh = Self::fresh(new, now);
        fresh.take_evenly(new, now, used);
        fresh
    }
}

fn converted(used: u64, old: &Quota, new: &Quota) -> u64 {
    let full = old.capacity() * old.unit();
    let new_full = new.capacity() * new.unit();
    let left = i128::from(full) - i128::from(used);
    let new_left = (left * i128::from(new.unit())).div_euclid(i128::from(old.unit()));
    let new_used = (i128::from(new_full) - new_left).clamp(0, i128::from(MOST_USED));
    u64::try_from(new_used).unwrap_or(MOST_USED)
}
