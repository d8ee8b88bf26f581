//! Comparison of quotas: requests that one admits can never exceed another.

use tower_quota::{Algorithm, Quota};

/// Returns whether requests that `strict` admits never exceed `loose`. `false` may be wrong.
pub(super) fn is_stricter(strict: &Quota, loose: &Quota) -> bool {
    if strict.algorithm() == Algorithm::LeakyBucket || loose.algorithm() == Algorithm::LeakyBucket {
        return false;
    }
    let (strict_micros, loose_micros) = (strict.period().as_micros(), loose.period().as_micros());
    if loose.algorithm().is_bucket() {
        // At most `burst + rate * t` in any time t.
        let burst = match strict.algorithm() {
            algorithm if algorithm.is_bucket() => strict.capacity(),
            _ => strict.units().saturating_mul(2),
        };
        let is_slower =
            u128::from(strict.units()) * loose_micros <= u128::from(loose.units()) * strict_micros;
        return is_slower && burst <= loose.capacity();
    }
    most_within(strict, loose_micros) <= u128::from(loose.units())
}

/// Returns the most units that a quota admits in any window of this length.
fn most_within(quota: &Quota, micros: u128) -> u128 {
    let (units, period) = (u128::from(quota.units()), quota.period().as_micros());
    match quota.algorithm() {
        algorithm if algorithm.is_bucket() => {
            u128::from(quota.capacity()) + units * micros / period
        }
        // In each period that the window touches.
        Algorithm::SlidingLog => units * micros.div_ceil(period),
        _ => units * (micros.div_ceil(period) + 1),
    }
}

#[cfg(test)]
mod tests {
    use tower_quota::Quota;

    use super::is_stricter;

    #[test]
    fn slower_and_smaller_quota_is_stricter() {
        let minute = Quota::per_minute(10);
        for (strict, loose, expected) in [
            (minute, Quota::per_second(1), false),
            (minute, Quota::per_minute(20), true),
            (minute, Quota::per_hour(1_000), true),
            (minute, Quota::per_hour(300), false),
            (minute, Quota::per_hour(1_000).fixed_window(), true),
            (minute, Quota::per_hour(600).fixed_window(), false),
            (
                Quota::per_minute(10).sliding_log(),
                Quota::per_hour(600).sliding_log(),
                true,
            ),
            (
                Quota::per_minute(10).fixed_window(),
                Quota::per_minute(20).fixed_window(),
                true,
            ),
            (
                Quota::per_minute(10).leaky_bucket(),
                Quota::per_hour(10_000),
                false,
            ),
        ] {
            assert_eq!(
                is_stricter(&strict, &loose),
                expected,
                "{strict:?} {loose:?}"
            );
        }
    }
}
