//! Conversion of a state to another quota.
//!
//! | from | to | the new quota keeps |
//! |---|---|---|
//! | window or log | same period and grain, other units | the used units, so a raised limit helps at once |
//! | holds | other units or another expiry | the held units, each hold with its own expiry |
//! | any other state | holds | the remaining units, up to the new capacity. The rest cannot be released and expires |
//! | any other state | any other quota | the remaining units, up to the new capacity, or the debt |
//!
//! A bucket also keeps the fraction of a unit. The conversion multiplies exactly and rounds against the client, by less
//! than one grain of the new quota. A quota refills at least one grain per microsecond, so a conversion costs the client
//! at most one microsecond. Two versions of a service may count a client in turn. The versions pay no debt early, and
//! they starve no client that waits longer than a microsecond between two requests.
//!
//! # Two versions of a service
//!
//! Two versions of a bucket admit at most `larger + refill + n * (larger - smaller)` units together. `larger` and
//! `smaller` are the two capacities. `refill` is the refill of the version that counts the client at each instant. `n`
//! counts how often the larger version finds the client full under the smaller version. A full bucket is not stored,
//! so the larger version then finds a new client. Between two such times, time refills at least one unit.
//!
//! Versions with the same capacity therefore admit no more than the higher rate. If you change a burst, your clients may
//! get the larger burst several times while both versions run. For example, 10 per second with a burst of 1 and 600 per
//! minute can admit 600 units after every 100 ms.
//!
//! A queue follows the same rules, because a stored bucket does not say whether it is a queue. If the queue becomes
//! longer, its next turn moves back by the added places.

use super::{Bucket, State};
use crate::quota::{Algorithm, MOST_USED, Quota};

impl State {
    /// Returns the state under another quota, as of `now`.
    #[must_use]
    pub(crate) fn convert(&self, old: &Quota, new: &Quota, now: u64) -> Self {
        let mut state = self.clone();
        state.advance(old, now);
        if old.has_windows_of(new) {
            return state;
        }
        let used = converted(state.used(old, now), old, new);
        if new.algorithm().is_bucket() {
            return Self::Bucket(Bucket::new(new, used, now));
        }
        // A hold of the request that converts the state must have an instant of its own.
        let is_hold = new.algorithm() == Algorithm::Concurrent;
        let mut fresh = Self::fresh(new, now);
        fresh.take(new, now.saturating_sub(u64::from(is_hold)), used);
        fresh
    }
}

/// Returns the used grains or units under another quota.
fn converted(used: u64, old: &Quota, new: &Quota) -> u64 {
    let full = old.capacity() * old.unit();
    let new_full = new.capacity() * new.unit();
    let debt = used.saturating_sub(full) / old.unit();
    if debt >= (MOST_USED - new_full) / new.unit() {
        return MOST_USED;
    }
    let left = i128::from(full) - i128::from(used);
    let new_left = (left * i128::from(new.unit())).div_euclid(i128::from(old.unit()));
    u64::try_from(i128::from(new_full) - new_left).unwrap_or(0)
}
