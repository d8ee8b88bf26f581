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

use super::fixed_window::MOST_COUNTED;
use super::{Bucket, State};
use crate::quota::Quota;

/// The finest fraction of a unit that is kept: products of two numbers below 2^26 stay exact in Lua too.
const FINEST: u64 = 1 << 26;

/// Units left, or owed: `units`, and `rest / grain` of another one.
struct UnitBalance {
    is_debt: bool,
    units: u64,
    rest: u64,
    grain: u64,
}

/// Returns a state under another quota, advanced to `now`.
pub(super) fn convert(state: &State, old: &Quota, new: &Quota, now: u64) -> State {
    let mut state = state.clone();
    state.advance(old, now);
    if old.has_windows_of(new) {
        return state;
    }
    let (used, grain) = state.counting().used(old, now);
    let left = UnitBalance::of(old, used, grain);
    match State::fresh(new, now) {
        State::Bucket(_) => State::Bucket(Bucket::new(new, grains_used(&left, new), now)),
        mut fresh => {
            fresh.take(new, now, units_used(&left, new));
            fresh
        }
    }
}

/// Returns the grains of a bucket that are used under another quota.
pub(crate) fn bucket_used(old: &Quota, new: &Quota, used: u64) -> u64 {
    grains_used(&UnitBalance::of(old, used, old.grain()), new)
}

impl UnitBalance {
    /// Returns the balance of a quota of which this many grains are used.
    fn of(quota: &Quota, used: u64, grain: u64) -> Self {
        let full = quota.capacity() * grain;
        let amount = used.abs_diff(full);
        Self { is_debt: used > full, units: amount / grain, rest: amount % grain, grain }
    }
}

fn units_used(left: &UnitBalance, new: &Quota) -> u64 {
    match left.is_debt {
        true => new.capacity() + left.units.min(MOST_COUNTED) + u64::from(left.rest > 0),
        false => new.capacity().saturating_sub(left.units),
    }
}

fn grains_used(left: &UnitBalance, new: &Quota) -> u64 {
    let (grain, full) = (new.grain(), new.capacity() * new.grain());
    if left.is_debt {
        // A debt is cut to the largest one that a bucket can hold.
        let begun = u64::from(left.rest > 0 && left.grain != grain);
        let owed = match left.units >= full / grain {
            true => full,
            false => left.units * grain + fraction(left, grain) + begun,
        };
        full + owed
    } else if left.units >= new.capacity() {
        0
    } else {
        full - (left.units * grain + fraction(left, grain))
    }
}

/// Returns the fraction of a unit that is left, in grains of another size, rounded down.
fn fraction(left: &UnitBalance, grain: u64) -> u64 {
    if left.grain == grain {
        return left.rest;
    }
    let cut = left.grain.div_ceil(FINEST);
    let parts = left.grain.div_ceil(cut);
    let rest = left.rest / cut;
    rest * (grain / parts) + rest * (grain % parts) / parts
}
