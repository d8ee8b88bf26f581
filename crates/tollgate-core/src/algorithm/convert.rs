//! A quota changes while counters live.
//!
//! What a client has left stays, up to the new capacity; what it owes beyond an empty bucket stays owed. Between two
//! buckets the fraction of a unit is kept too, to 20 bits.

use super::State;
use super::fixed_window::{self, MOST_COUNTED};
use super::sliding_window;
use crate::quota::Quota;

/// 2^20: the parts of a unit that a fraction is rounded to.
const PARTS: u64 = 1 << 20;

/// Units left, or owed: `whole` units and `parts` of another.
struct Standing {
    owed: bool,
    whole: u64,
    parts: u64,
}

pub(super) fn convert(state: &State, old: &Quota, new: &Quota, from: u64, now: u64) -> State {
    let mut state = state.clone();
    state.advance(old, from, now);
    let standing = standing(&state, old, now);
    let mut converted = State::fresh(new, now);
    match &mut converted {
        State::Bucket { used } => *used = grains_used(&standing, new),
        State::Window { start, count } => {
            *start = fixed_window::start(new, now, now);
            *count = units_used(&standing, new).min(MOST_COUNTED);
        }
        State::Sliding { count, .. } => *count = sliding_window::taken(new, 0, units_used(&standing, new)),
        State::Log(log) => log.take(now, units_used(&standing, new)),
    }
    converted
}

fn standing(state: &State, quota: &Quota, now: u64) -> Standing {
    let (owed, amount, grain) = match state {
        State::Bucket { used } => {
            let full = quota.capacity() * quota.grain();
            (*used > full, used.abs_diff(full), quota.grain())
        }
        State::Window { count, .. } => (*count > quota.capacity(), count.abs_diff(quota.capacity()), 1),
        State::Sliding { .. } | State::Log(_) => (false, state.left(quota, now, now).0, 1),
    };
    Standing { owed, whole: amount / grain, parts: parts_of(amount % grain, grain, owed) }
}

/// A fraction `rest / grain` in parts of 2^20, rounded against the client.
fn parts_of(rest: u64, grain: u64, up: bool) -> u64 {
    // Large grains are cut first, so that the product below stays under 2^53.
    let cut = if grain < 1 << 32 { 1 } else { PARTS };
    let parts = (rest / cut) * PARTS / grain.div_ceil(cut);
    if up && rest > 0 { parts + 1 } else { parts }
}

fn grains_used(standing: &Standing, new: &Quota) -> u64 {
    let (grain, full) = (new.grain(), new.capacity() * new.grain());
    let fraction = grain / PARTS * standing.parts + grain % PARTS * standing.parts / PARTS;
    if standing.owed {
        // A debt no bucket can hold is cut to the longest one that it can.
        let most_owed = full;
        let owed = if standing.whole >= most_owed / grain { most_owed } else { standing.whole * grain + fraction };
        full + owed
    } else if standing.whole >= new.capacity() {
        0
    } else {
        full - (standing.whole * grain + fraction)
    }
}

fn units_used(standing: &Standing, new: &Quota) -> u64 {
    match standing.owed {
        true => new.capacity() + standing.whole.min(MOST_COUNTED) + u64::from(standing.parts > 0),
        false => new.capacity().saturating_sub(standing.whole),
    }
}
