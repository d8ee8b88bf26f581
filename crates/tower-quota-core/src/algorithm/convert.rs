//! Conversion of a state to another quota.
//!
//! | from | to | kept |
//! |---|---|---|
//! | a window or a log | the same with other units, of the same period and grain | what was used: a raised limit helps at once |
//! | bucket | bucket | what is left, with the fraction of a unit, up to the new capacity |
//! | anything | anything else | what is left, up to the new capacity |
//!
//! A debt stays a debt. What is left grows only with time, at the rate of the quota in force. Two versions of a service
//! that take turns therefore admit no more than the larger of both quotas. Each conversion between buckets loses at most
//! one grain, or 2^-26 of a unit where a unit has more grains. It never gains.
//!
//! A queue is no exception: one that becomes longer by some units gives its next turn as many units later, and one that
//! becomes shorter as many earlier. A stored bucket does not say whether it was a queue, so to keep the turns that were
//! given would let a queue and a bucket that take turns admit more than both.

use super::fixed_window::MOST_COUNTED;
use super::{Bucket, State};
use crate::quota::{MOST_USED, Quota};

/// Returns a state under another quota, advanced to `now`.
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
            fresh.take(
                new,
                now,
                units_used(used, old.capacity() * grain, grain, new),
            );
            fresh
        }
    }
}

/// Returns the units used of a window or a log: of the old quota, `used` of `full` grains were, `grain` to a unit.
fn units_used(used: u64, full: u64, grain: u64, new: &Quota) -> u64 {
    let (units, rest) = (used.abs_diff(full) / grain, used.abs_diff(full) % grain);
    match used > full {
        true => new.capacity() + units.min(MOST_COUNTED) + u64::from(rest > 0),
        false => new.capacity().saturating_sub(units),
    }
}

/// Returns the grains used of a bucket: of the old quota, `used` of `full` grains were, `grain` to a unit.
fn grains_used(used: u64, full: u64, grain: u64, new: &Quota) -> u64 {
    let (new_grain, new_full) = (new.grain(), new.capacity() * new.grain());
    let (units, rest) = (used.abs_diff(full) / grain, used.abs_diff(full) % grain);
    // Less than one unit, in grains of the new quota.
    let scaled = u128::from(rest) * u128::from(new_grain);
    if used > full {
        match units >= (MOST_USED - new_full) / new_grain {
            true => MOST_USED,
            false => new_full + units * new_grain + whole(scaled.div_ceil(u128::from(grain))),
        }
    } else if units >= new.capacity() {
        0
    } else {
        new_full - units * new_grain - whole(scaled / u128::from(grain))
    }
}

/// Returns a part of a unit, in grains.
#[expect(clippy::cast_possible_truncation, reason = "less than a grain's 2^50")]
const fn whole(grains: u128) -> u64 {
    grains as u64
}
