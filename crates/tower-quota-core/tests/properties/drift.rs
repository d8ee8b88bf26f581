//! Tests that the rate is the configured rate, and does not drift.

use std::time::Duration;

use proptest::prelude::{Strategy, prop_assert, prop_oneof, proptest};
use proptest::sample::select;
use tower_quota_core::{Algorithm, Quota};

use super::trace::{Play, micros, quota_by};
use super::{config, magnitude};

const DAY: u64 = 86_400_000_000;
const MILLION: u128 = 1_000_000;

/// Checks `cost` units repeatedly, exactly at the end of each wait.
///
/// Ends after `span` or `most` admitted checks. Returns the admitted units, and the microseconds
/// from the first to the last admission.
fn hammer(play: &mut Play, cost: u64, span: u64, most: u64) -> (u128, u64) {
    // Spend the full bucket first, which does not count for the rate.
    let full = play.quota.capacity();
    assert!(play.check(full).is_allowed());
    let start = play.now;
    let (mut admitted, mut last) = (0, start);
    for _ in 0..most {
        let retry = play
            .peek_at(play.now, play.charge(cost))
            .retry_after()
            .map_or(0, micros);
        if play.now + retry - start > span {
            break;
        }
        play.now += retry;
        assert!(play.check(cost).is_allowed());
        admitted += u128::from(cost);
        last = play.now;
    }
    (admitted, last - start)
}

/// Returns an error unless the rate is the quota's, within 1 part per million and one microsecond.
fn is_the_rate(quota: &Quota, admitted: u128, elapsed: u64) -> Result<(), String> {
    let (units, period) = (
        u128::from(quota.units()),
        u128::from(micros(quota.period())),
    );
    let due = admitted * period;
    let never_more = due <= u128::from(elapsed) * units;
    let hardly_less =
        u128::from(elapsed.saturating_sub(1)) * units * (MILLION - 1) <= due * MILLION;
    if never_more && hardly_less {
        Ok(())
    } else {
        Err(format!("{admitted} units in {elapsed} us by {quota:?}"))
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn buckets_keep_their_rate(
        quota in select(vec![Algorithm::TokenBucket, Algorithm::Gcra, Algorithm::LeakyBucket]).prop_flat_map(quota_by),
        share in 0..64_u64,
    ) {
        // A request must leave room for the refill of a microsecond, or the bucket overflows.
        let per_micro = quota.refill().div_ceil(quota.grain());
        let cost = (quota.capacity() / 64 * share).max(1).min(quota.capacity().saturating_sub(per_micro));
        if cost > 0 {
            let (admitted, elapsed) = hammer(&mut Play::new(quota), cost, u64::MAX >> 2, 500);
            prop_assert!(admitted == 500 * u128::from(cost));
            is_the_rate(&quota, admitted, elapsed).map_err(proptest::test_runner::TestCaseError::fail)?;
        }
    }

    #[test]
    fn every_common_rate_is_counted(
        units in magnitude(1, 10_000_000),
        period in prop_oneof![select(vec![1_000, 1_000_000, 60_000_000, 3_600_000_000, DAY, 366 * DAY])],
    ) {
        // Without a burst, all rates from 1 per year to 10 million per second are representable.
        let units = units.min(period * 10);
        let quota = Quota::try_new(units, Duration::from_micros(period));
        prop_assert!(quota.is_ok(), "{:?}", quota);
    }
}

/// Runs each bucket for a simulated day, or for thirty periods if that is longer.
///
/// The costs are large, to need few steps.
#[test]
fn buckets_keep_rate_for_a_day() {
    let year = Duration::from_secs(366 * 86_400);
    let rates = [
        Quota::new(1, year),
        Quota::new(7, year),
        Quota::per_day(1),
        Quota::per_day(86_399),
        Quota::per_hour(1),
        Quota::per_hour(1_001),
        Quota::per_minute(1),
        Quota::per_minute(61),
        Quota::new(3, Duration::from_secs(7)),
        Quota::per_second(1),
        Quota::per_second(3),
        Quota::per_second(7_919),
        Quota::new(1_000, Duration::from_micros(999_983)),
        Quota::per_second(999_983),
        Quota::per_second(10_000_000),
        Quota::new(10_000, Duration::from_millis(1)),
    ];
    for quota in rates
        .into_iter()
        .flat_map(|quota| [quota, quota.gcra(), quota.leaky_bucket()])
    {
        let span = DAY.max(30 * micros(quota.period()));
        let due = u128::from(span) * u128::from(quota.units()) / u128::from(micros(quota.period()));
        let cost = u64::try_from(due / 20_000).unwrap().max(1);
        let roomy = quota.burst(quota.capacity().max(2 * cost));
        let (admitted, elapsed) = hammer(&mut Play::new(roomy), cost, span, u64::MAX);
        is_the_rate(&roomy, admitted, elapsed).unwrap();
        assert!(
            admitted + u128::from(cost) >= due * (MILLION - 1) / MILLION,
            "{admitted} of {due} by {quota:?}"
        );
        assert!(admitted <= due, "{admitted} of {due} by {quota:?}");
    }
}

/// Asserts that a sliding window loses at most one unit per window, and never adds a unit.
#[test]
fn sliding_window_loses_at_most_one_unit() {
    for units in [1, 2, 3, 10, 100, 1_000] {
        let quota = Quota::per_second(units).sliding_window();
        let mut play = Play::new(quota);
        let start = play.now;
        let windows = 200;
        let mut admitted = 0;
        while play.now < start + windows * 1_000_000 {
            match play.check(1).retry_after() {
                Some(retry) => play.now += micros(retry),
                None => admitted += 1,
            }
        }
        assert!(
            admitted <= (windows + 1) * units,
            "{admitted} in {windows} windows by {quota:?}"
        );
        let least = if units == 1 {
            windows / 2
        } else {
            windows * (units - 1)
        };
        assert!(
            admitted >= least,
            "{admitted} in {windows} windows by {quota:?}"
        );
    }
}

/// Asserts that windows admit exactly their units in each period.
#[test]
fn windows_keep_rate_for_a_day() {
    for quota in [
        Quota::per_second(7),
        Quota::per_minute(61),
        Quota::per_hour(1_001),
        Quota::per_day(10_000),
    ] {
        let windows = DAY / micros(quota.period());
        for quota in [
            quota.fixed_window(),
            quota.fixed_window().from_first_request(),
            quota.sliding_log(),
        ] {
            let mut play = Play::new(quota);
            let mut admitted = 0;
            for _ in 0..windows {
                while play.check(1).is_allowed() {
                    admitted += 1;
                }
                play.now += play
                    .peek_at(play.now, play.charge(1))
                    .retry_after()
                    .map_or(0, micros);
            }
            assert_eq!(admitted, windows * quota.units(), "{quota:?}");
        }
    }
}
