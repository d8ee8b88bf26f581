//! A quota changes while counters live.
//!
//! What a client has left stays, up to the new capacity; what it owes beyond an empty bucket or window stays owed. So
//! does the timing, as far as both quotas have the same kind of state: a window keeps its start, a log its stamps.
//! Between buckets the fraction of a unit is kept too. Converting back and forth, as two versions of a service that
//! take turns do, loses at most a grain of either side each time, or 2^-26 of a unit where a unit has more grains.

use super::State;
use super::fixed_window::{self, MOST_COUNTED};
use super::sliding_window;
use crate::quota::Quota;

/// 2^26: products of two numbers below it stay exact everywhere.
const FINEST: u64 = 1 << 26;

/// Units left, or owed: `whole` units and `rest / grain` of another.
struct Standing {
    owed: bool,
    whole: u64,
    rest: u64,
    grain: u64,
}

pub(super) fn convert(state: &State, old: &Quota, new: &Quota, from: u64, now: u64) -> State {
    let mut state = state.clone();
    state.advance(old, from, now);
    let standing = standing(&state, old, now);
    match (state, State::fresh(new, now)) {
        (_, State::Bucket { .. }) => State::Bucket { used: grains_used(&standing, new) },
        (State::Window { start, .. }, State::Window { .. }) => State::Window {
            start: fixed_window::start(new, start, now),
            count: units_used(&standing, new).min(MOST_COUNTED),
        },
        (State::Sliding { start, before, count }, State::Sliding { .. }) if old.period() == new.period() => {
            let wanted = units_used(&standing, new).min(2 * new.capacity());
            let (before, count) = sliding_window::adjusted(new, start, before, count, now, wanted);
            State::Sliding { start, before, count }
        }
        (State::Log(mut log), State::Log(_)) => {
            log.adjust(new, now, units_used(&standing, new));
            State::Log(log)
        }
        (_, mut fresh) => {
            fresh.take(new, now, units_used(&standing, new));
            fresh
        }
    }
}

fn standing(state: &State, quota: &Quota, now: u64) -> Standing {
    let (owed, amount, grain) = match state {
        State::Bucket { used } => {
            let full = quota.capacity() * quota.grain();
            (*used > full, used.abs_diff(full), quota.grain())
        }
        State::Window { count, .. } => (*count > quota.capacity(), count.abs_diff(quota.capacity()), 1),
        State::Sliding { start, before, count } => match sliding_window::owed(quota, *start, *before, *count, now) {
            0 => (false, state.left(quota, now, now).0, 1),
            owed => (true, owed, 1),
        },
        State::Log(log) => {
            let total = log.total(quota, now);
            (total > quota.capacity(), total.abs_diff(quota.capacity()), 1)
        }
    };
    Standing { owed, whole: amount / grain, rest: amount % grain, grain }
}

fn grains_used(standing: &Standing, new: &Quota) -> u64 {
    let (grain, full) = (new.grain(), new.capacity() * new.grain());
    if standing.owed {
        // A debt no bucket can hold is cut to the longest one that it can.
        let most_owed = full;
        let begun = u64::from(standing.rest > 0 && standing.grain != grain);
        let owed = if standing.whole >= most_owed / grain {
            most_owed
        } else {
            standing.whole * grain + fraction(standing, grain) + begun
        };
        full + owed
    } else if standing.whole >= new.capacity() {
        0
    } else {
        full - (standing.whole * grain + fraction(standing, grain))
    }
}

/// The part of a unit beyond the whole ones, in grains of another size, rounded down.
fn fraction(standing: &Standing, grain: u64) -> u64 {
    if standing.grain == grain {
        return standing.rest;
    }
    let cut = standing.grain.div_ceil(FINEST);
    let parts = standing.grain.div_ceil(cut);
    let rest = standing.rest / cut;
    rest * (grain / parts) + rest * (grain % parts) / parts
}

fn units_used(standing: &Standing, quota: &Quota) -> u64 {
    match standing.owed {
        true => quota.capacity() + standing.whole.min(MOST_COUNTED) + u64::from(standing.rest > 0),
        false => quota.capacity().saturating_sub(standing.whole),
    }
}
