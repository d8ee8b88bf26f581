//! Conversion of a state to another quota.
//!
//! | from | to | the new quota keeps |
//! |---|---|---|
//! | window or log | the same period and grain, other units | the used units, so a raised limit helps at once |
//! | holds | other units or another expiry | the held units, each hold with its own expiry |
//! | any other state | holds | the remaining units, up to the new capacity. Nobody can release the rest, which expires |
//! | any other state | any other quota | the remaining units, up to the new capacity, or the debt |
//!
//! A bucket keeps the fraction of a unit too. The conversion multiplies exactly and rounds against the client, by less
//! than one grain of the new quota. A quota refills at least one grain in a microsecond, so a conversion costs the client
//! at most one microsecond. Two versions of a service may take turns as fast as clients ask: the versions pay no debt early,
//! and they starve no client who waits longer than a microsecond between two requests.
//!
//! # Two versions of a service
//!
//! Two versions of a bucket admit at most `larger + refill + n * (larger - smaller)` units together. `larger` and `smaller`
//! are the two capacities, and `refill` is the refill of the version that counts the client at each instant. `n` counts
//! how often the larger version finds the client full under the smaller version. A full bucket is not stored, so the
//! client is then a new client to the larger version. Between two such times, time refills at least one unit.
//!
//! Versions of one capacity therefore admit no more than the larger rate. If you change a burst, expect clients to get the
//! larger burst several times while both versions run: 10 per second with a burst of 1 and 600 per minute can admit 600
//! units after every 100 ms.
//!
//! A queue follows the same rules, because a stored bucket does not say if it was a queue. If the queue becomes longer, its
//! next turn moves back by the added places.

use super::fixed_window::MOST_COUNTED;
use super::{Bucket, State};
use crate::quota::{Algorithm, MOST_USED, Quota};

/// Converts a state to another quota and advances the state to `now`.
pub(super) fn convert(state: &State, old: &Quota, new: &Quota, now: u64) -> State {
    let mut state = state.clone();
    state.advance(old, now);
    if old.has_windows_of(new) {
        return state;
    }
    let (used, grain) = state.used(old, now);
    match State::fresh(new, now) {
        State::Bucket(_) => State::Bucket(Bucket::new(
            new,
            grains_used(used, old.capacity() * grain, grain, new),
            now,
        )),
        mut fresh => {
            // A hold of the request that converts the state must have an instant of its own.
            let since = now.saturating_sub(u64::from(new.algorithm() == Algorithm::Concurrent));
            let units = units_used(used, old.capacity() * grain, grain, new);
            fresh.take(new, since, units);
            fresh
        }
    }
}

/// Returns the used units of a window or a log from the `used` of `full` grains of another quota.
fn units_used(used: u64, full: u64, grain: u64, new: &Quota) -> u64 {
    let (units, rest) = (used.abs_diff(full) / grain, used.abs_diff(full) % grain);
    match used > full {
        true => new.capacity() + units.min(MOST_COUNTED) + u64::from(rest > 0),
        false => new.capacity().saturating_sub(units),
    }
}

/// Returns the used grains of a bucket from the `used` of `full` grains of another quota.
fn grains_used(used: u64, full: u64, grain: u64, new: &Quota) -> u64 {
    let (new_grain, new_full) = (new.grain(), new.capacity() * new.grain());
    let (units, rest) = (used.abs_diff(full) / grain, used.abs_diff(full) % grain);
    // The fraction of a unit, in new grains times old grains.
    let scaled = u128::from(rest) * u128::from(new_grain);
    if used > full {
        match units >= (MOST_USED - new_full) / new_grain {
            true => MOST_USED,
            false => new_full + units * new_grain + grains(scaled.div_ceil(u128::from(grain))),
        }
    } else if units >= new.capacity() {
        0
    } else {
        new_full - units * new_grain - grains(scaled / u128::from(grain))
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "less than a unit, which has at most 2^50 grains"
)]
const fn grains(exact: u128) -> u64 {
    exact as u64
}
