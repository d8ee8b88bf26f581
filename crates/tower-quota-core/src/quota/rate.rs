//! Rates as ratios of small integers, so that all products stay below 2^53.
//!
//! A unit of a bucket has `grain` grains, and each microsecond gives back `refill` grains. If the exact numbers are
//! too large, the ratio is the best smaller ratio, which never gives more than the quota.

/// The maximum number of grains of a full bucket. `f64` and Lua count the sum of four full buckets
/// exactly.
pub(crate) const MOST_GRAINS: u64 = 1 << 50;

/// The maximum number of grains that a bucket records as used, debts included.
pub const MOST_USED: u64 = 2 * MOST_GRAINS;

/// Returns the grains per unit and per microsecond, if they miss the rate by at most 1 part per million.
pub(super) const fn grains(units: u64, period: u64, capacity: u64) -> Option<(u64, u64)> {
    let common = gcd(units, period);
    let (refill, grain) = (units / common, period / common);
    let most = MOST_GRAINS / capacity;
    if grain <= most {
        return Some((grain, refill));
    }
    if most == 0 {
        return None;
    }
    let (near_refill, near_grain) = best_from_below(refill, grain, most);
    let wanted = refill as u128 * near_grain as u128;
    let given = near_refill as u128 * grain as u128;
    if (wanted - given) * 1_000_000 <= wanted {
        Some((near_grain, near_refill))
    } else {
        None
    }
}

/// Returns the microseconds per step of a sliding window's weight, and no refill.
pub(super) const fn weight_step(units: u64, period: u64) -> Option<(u64, u64)> {
    // The step keeps `units * steps <= MOST_GRAINS`. A step exists, because units never exceed 10
    // per microsecond of 366 days.
    let step = period.div_ceil(MOST_GRAINS / units);
    if step == 1 || period / step >= 1_000_000 {
        Some((step, 0))
    } else {
        None
    }
}

/// Returns the largest fraction up to `over / under` with a denominator up to `most`.
///
/// Convergents of even index approach from below, and so do the fractions in between (Khinchin, "Continued
/// Fractions", theorem 15).
const fn best_from_below(mut over: u64, mut under: u64, most: u64) -> (u64, u64) {
    let (mut before, mut last) = ((0, 1), (1, 0));
    let mut even = true;
    while under != 0 {
        let quotient = over / under;
        let next = (quotient * last.0 + before.0, quotient * last.1 + before.1);
        if next.1 > most {
            if !even {
                break;
            }
            let fitting = (most - before.1) / last.1;
            return (fitting * last.0 + before.0, fitting * last.1 + before.1);
        }
        (over, under) = (under, over % under);
        (before, last) = (last, next);
        even = !even;
    }
    last
}

pub(super) const fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
