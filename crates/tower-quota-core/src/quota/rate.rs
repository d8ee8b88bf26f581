//! Rates as ratios of two small integers: every product of the algorithms stays below 2^53.
//!
//! A bucket is counted in *grains*: one unit is `grain` of them, and each microsecond gives back `refill`. The reduced
//! ratio of the quota is used if it is small enough; the bucket is then exact. Otherwise the best ratio from below is
//! used, which never gives more than the quota. It is an error if that ratio misses by over 1 part per million.

/// The most grains a full bucket may hold. Twice this, and the sum of two such, stay below 2^53, where both an `f64`
/// and Lua still count exactly.
pub(crate) const MOST_GRAINS: u64 = 1 << 50;

/// The most grains a bucket remembers as taken, debts included.
pub const MOST_USED: u64 = 2 * MOST_GRAINS;

/// Returns the grains per unit and the grains per microsecond of a rate: `units` per `period` microseconds.
///
/// Returns `None` if no such pair counts `capacity` units to within 1 part per million of the rate.
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

/// Returns the microseconds per step of a sliding window's weight: as few as the products allow.
///
/// Returns `None` if a window would have so few steps that they distort the rate by over 1 part per million.
pub(super) const fn weight_step(units: u64, period: u64) -> Option<u64> {
    // `units * steps <= MOST_GRAINS`; units never exceed 10 per microsecond of at most 366 days, so this is not 0.
    let most_steps = MOST_GRAINS / units;
    let step = period.div_ceil(most_steps);
    if step == 1 || period / step >= 1_000_000 {
        Some(step)
    } else {
        None
    }
}

/// Returns the largest fraction that is at most `over / under` and has a denominator of at most `most`.
///
/// It is found by continued fractions (Khinchin, "Continued Fractions", theorem 15). Convergents of even index approach
/// from below, and so do the intermediate fractions towards the next even one.
const fn best_from_below(over: u64, under: u64, most: u64) -> (u64, u64) {
    let (mut rest_over, mut rest_under) = (over, under);
    let (mut before, mut last) = ((0, 1), (1, 0));
    let mut even = true;
    loop {
        let quotient = rest_over / rest_under;
        let next = (quotient * last.0 + before.0, quotient * last.1 + before.1);
        if next.1 > most {
            if !even {
                return last;
            }
            let fitting = (most - before.1) / last.1;
            return (fitting * last.0 + before.0, fitting * last.1 + before.1);
        }
        (rest_over, rest_under) = (rest_under, rest_over % rest_under);
        (before, last) = (last, next);
        even = !even;
        if rest_under == 0 {
            return last;
        }
    }
}

pub(super) const fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
