//! Rates as ratios of two integers, small enough that every product the algorithms form stays below 2^53.
//!
//! A bucket is counted in *grains*: one unit is `grain` of them, and each microsecond gives back `refill`. Where the
//! quota's own ratio is small enough after cancelling, it is used as it is and the bucket is exact. Otherwise the best
//! ratio from below is taken (never more than the quota allows), and refused when it misses by over 1 part per million.

/// The most grains a full bucket may hold. Twice this, and the sum of two such, stay below 2^53, where both an `f64`
/// and Lua still count exactly.
pub(crate) const MOST_GRAINS: u64 = 1 << 50;

/// The most grains a bucket remembers as taken, debts included.
pub const MOST_USED: u64 = 2 * MOST_GRAINS;

/// Grains per unit and grains per microsecond for `units` per `period` microseconds, or `None` when no such pair holds
/// `capacity` units to within 1 part per million of the rate.
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
    if (wanted - given) * 1_000_000 <= wanted { Some((near_grain, near_refill)) } else { None }
}

/// Microseconds per step of a sliding window's weight: 1, unless the products of counts and steps would grow too large.
/// `None` when a window would have so few steps that they distort the rate by over 1 part per million.
pub(super) const fn weight_step(units: u64, period: u64) -> Option<u64> {
    // `units * steps <= MOST_GRAINS`; units never exceed 10 per microsecond of at most 366 days, so this is not 0.
    let most_steps = MOST_GRAINS / units;
    let step = period.div_ceil(most_steps);
    if step == 1 || period / step >= 1_000_000 { Some(step) } else { None }
}

/// The largest fraction that is at most `over / under` and whose denominator is at most `most`, by continued fractions
/// (Khinchin, "Continued Fractions", theorem 15): convergents of even index approach from below, and so do the
/// intermediate fractions towards the next even one.
const fn best_from_below(over: u64, under: u64, most: u64) -> (u64, u64) {
    let (mut rest_over, mut rest_under) = (over, under);
    let (mut before, mut last) = ((0, 1), (1, 0));
    let mut even = true;
    loop {
        let whole = rest_over / rest_under;
        let next = (whole * last.0 + before.0, whole * last.1 + before.1);
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
