//! Tests the errors and the getters of quotas.

use std::time::Duration;

use tower_quota_core::{Algorithm, ConfigError, Quota};

const SECOND: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(366 * 86_400);

#[test]
fn zero_units_are_an_error() {
    assert_eq!(Quota::try_new(0, SECOND), Err(ConfigError::ZeroUnits));
}

#[test]
fn period_out_of_range_is_an_error() {
    let wrong = [
        Duration::ZERO,
        Duration::from_micros(999),
        Duration::from_nanos(1_000_001),
        LONGEST + Duration::from_micros(1),
        Duration::MAX,
    ];
    for period in wrong {
        assert_eq!(Quota::try_new(1, period), Err(ConfigError::Period(period)));
    }
    assert!(Quota::try_new(1, Duration::from_millis(1)).is_ok());
    assert!(Quota::try_new(1, LONGEST).is_ok());
}

#[test]
fn rate_out_of_range_is_an_error() {
    assert!(Quota::try_new(10_000_000, SECOND).is_ok());
    for (units, period) in [
        (10_000_001, SECOND),
        (10_001, Duration::from_millis(1)),
        (u64::MAX, LONGEST),
    ] {
        assert_eq!(
            Quota::try_new(units, period),
            Err(ConfigError::TooFast { units, period })
        );
    }
}

#[test]
fn burst_sets_the_capacity() {
    let quota = Quota::per_second(10);
    assert_eq!(quota.try_burst(0), Err(ConfigError::ZeroBurst));
    for algorithm in [
        Algorithm::FixedWindow,
        Algorithm::SlidingWindow,
        Algorithm::SlidingLog,
    ] {
        let error = Err(ConfigError::BurstOnWindow(algorithm));
        assert_eq!(quota.try_burst(20).unwrap().try_algorithm(algorithm), error);
        assert_eq!(quota.try_algorithm(algorithm).unwrap().try_burst(20), error);
        assert_eq!(quota.try_algorithm(algorithm).unwrap().capacity(), 10);
    }
    for algorithm in [
        Algorithm::TokenBucket,
        Algorithm::Gcra,
        Algorithm::LeakyBucket,
    ] {
        let quota = quota.try_algorithm(algorithm).unwrap();
        assert_eq!((quota.capacity(), quota.units()), (10, 10));
        assert_eq!(quota.try_burst(20).unwrap().capacity(), 20);
        assert_eq!(quota.try_burst(1).unwrap().capacity(), 1);
        let fast = Quota::per_second(10_000_000)
            .try_algorithm(algorithm)
            .unwrap();
        assert_eq!(
            fast.try_burst(9),
            Err(ConfigError::BurstTooSmall {
                burst: 9,
                least: 10
            })
        );
        assert_eq!(fast.try_burst(10).unwrap().capacity(), 10);
    }
}

#[test]
fn uncountable_numbers_are_an_error() {
    let error = |units, period, capacity| {
        Err(ConfigError::NotRepresentable {
            units,
            period,
            capacity,
        })
    };
    for capacity in [1 << 51, u64::MAX] {
        assert_eq!(
            Quota::per_second(1).try_burst(capacity),
            error(1, SECOND, capacity)
        );
    }
    // A grain is a microsecond here, and a bucket has at most 2^50 grains.
    let most = (1 << 50) / 86_400_000_000;
    assert!(Quota::per_day(1).try_burst(most).is_ok());
    assert_eq!(
        Quota::per_day(1).try_burst(most + 1),
        error(1, Duration::from_secs(86_400), most + 1)
    );
    // If the burst leaves no room for the exact ratio, the quota uses the nearest smaller ratio.
    let near = Quota::try_new(999_983, Duration::from_micros(86_399_999_999))
        .unwrap()
        .try_burst(1 << 30)
        .unwrap();
    let given = u128::from(near.refill()) * 86_399_999_999;
    let wanted = u128::from(near.grain()) * 999_983;
    assert!(
        given < wanted && (wanted - given) * 1_000_000 <= wanted,
        "{near:?}"
    );
}

#[test]
fn sliding_window_of_few_steps_is_error() {
    let day = Duration::from_secs(86_400);
    let sliding = |units| {
        Quota::try_new(units, day)
            .unwrap()
            .try_algorithm(Algorithm::SlidingWindow)
    };
    assert!(sliding(1 << 30).is_ok());
    let units = 1 << 31;
    assert_eq!(
        sliding(units),
        Err(ConfigError::NotRepresentable {
            units,
            period: day,
            capacity: units
        })
    );
}

#[test]
fn long_log_is_an_error() {
    let quota = Quota::per_minute(10_001);
    assert_eq!(
        quota.try_algorithm(Algorithm::SlidingLog),
        Err(ConfigError::LogTooLong { units: 10_001 })
    );
    assert!(
        Quota::per_minute(10_000)
            .try_algorithm(Algorithm::SlidingLog)
            .is_ok()
    );
}

#[test]
fn offset_places_fixed_windows_only() {
    let day = Quota::per_day(1);
    let hour = Duration::from_secs(3_600);
    assert_eq!(
        day.try_offset(hour),
        Err(ConfigError::NotAFixedWindow(Algorithm::TokenBucket))
    );
    for offset in [day.period(), Duration::MAX, Duration::from_nanos(1)] {
        let error = ConfigError::Offset {
            offset,
            period: day.period(),
        };
        assert_eq!(day.fixed_window().try_offset(offset), Err(error));
    }
    assert_eq!(day.fixed_window().window_offset(), Some(0));
    assert_eq!(
        day.fixed_window().offset(hour).window_offset(),
        Some(3_600_000_000)
    );
    assert_eq!(
        day.fixed_window().from_first_request().window_offset(),
        None
    );
    // Another algorithm ignores the offset of a window.
    assert_eq!(
        day.fixed_window().offset(hour).sliding_log(),
        day.sliding_log()
    );
}

#[test]
fn share_keeps_rate_and_capacity() {
    // The share is exact, in the same period if the units divide, and in a longer period otherwise.
    assert_eq!(
        Quota::per_second(10).burst(20).divided(5),
        Quota::per_second(2).burst(4)
    );
    assert_eq!(
        Quota::per_second(10).divided(4),
        Quota::new(5, Duration::from_secs(2)).burst(2)
    );
    assert_eq!(
        Quota::per_hour(1).gcra().divided(7),
        Quota::new(1, Duration::from_secs(7 * 3_600)).gcra()
    );
    assert_eq!(
        Quota::new(3, LONGEST).divided(2),
        Quota::new(1, Duration::from_secs(244 * 86_400))
    );
    // If no exact share fits, the share is rounded down to units per 366 days.
    assert_eq!(Quota::new(7, LONGEST).divided(2), Quota::new(3, LONGEST));
    assert_eq!(
        Quota::per_second(9)
            .leaky_bucket()
            .queue(5)
            .divided(100)
            .capacity(),
        1
    );

    let hour = Duration::from_secs(3_600);
    let window = Quota::per_day(7).fixed_window().offset(hour);
    assert_eq!(
        window.divided(3),
        Quota::per_day(2).fixed_window().offset(hour)
    );
    assert_eq!(
        window.divided(8),
        Quota::new(1, Duration::from_secs(2 * 86_400))
            .fixed_window()
            .offset(hour)
    );
    assert_eq!(
        Quota::per_day(7).sliding_window().divided(15),
        Quota::new(1, Duration::from_secs(3 * 86_400)).sliding_window()
    );

    assert_eq!(
        Quota::per_second(1).try_divided(0),
        Err(ConfigError::ZeroInstances)
    );
    for quota in [
        Quota::per_day(1),
        Quota::per_day(1).fixed_window(),
        Quota::per_day(1).sliding_log(),
    ] {
        assert!(quota.try_divided(366).is_ok());
        let error = ConfigError::ShareTooSmall {
            units: 1,
            period: Duration::from_secs(86_400),
            instances: 367,
        };
        assert_eq!(quota.try_divided(367), Err(error));
    }
    // A capacity that differs from the units is a burst, which a window cannot have.
    let share = Quota::per_second(10).divided(4);
    assert_eq!(
        share.try_algorithm(Algorithm::SlidingLog),
        Err(ConfigError::BurstOnWindow(Algorithm::SlidingLog))
    );
}

#[test]
fn queue_is_for_leaky_buckets() {
    assert_eq!(
        Quota::per_second(9).leaky_bucket().queue(5),
        Quota::per_second(9).burst(5).leaky_bucket()
    );
    assert_eq!(
        Quota::per_second(9).try_queue(5),
        Err(ConfigError::NotALeakyBucket(Algorithm::TokenBucket))
    );
    assert_eq!(
        Quota::per_second(9).leaky_bucket().try_queue(0),
        Err(ConfigError::ZeroBurst)
    );
}

#[test]
fn longest_queue_stays_exact() {
    for quota in [
        Quota::per_second(10_000_000),
        Quota::new(1, LONGEST),
        Quota::per_day(7),
        Quota::per_second(3),
    ] {
        let queue = quota.leaky_bucket();
        for wait in [Duration::ZERO, SECOND, LONGEST, Duration::MAX] {
            let long = queue.for_waits_of(wait);
            assert_eq!(
                (long.grain(), long.refill()),
                (queue.grain(), queue.refill())
            );
            assert!(
                long.capacity() >= queue.capacity() && long.capacity() <= (1 << 50) / long.grain(),
                "{long:?}"
            );
            assert_eq!(long.for_waits_of(Duration::ZERO), queue);
            assert_eq!(long.token_bucket(), quota);
        }
    }
}

#[test]
fn accessors_return_the_numbers() {
    let quota = Quota::per_second(10).burst(25);
    assert_eq!(
        (quota.units(), quota.period(), quota.capacity()),
        (10, SECOND, 25)
    );
    assert_eq!((quota.grain(), quota.refill()), (100_000, 1));
    assert_eq!(quota.window(), Duration::from_millis(2_500));
    assert_eq!(
        Quota::per_minute(7).fixed_window().window(),
        Duration::from_secs(60)
    );
    assert_eq!(
        Quota::per_second(3).burst(1).window(),
        Duration::from_micros(333_334)
    );
    assert_eq!(Quota::per_hour(5).period(), Duration::from_secs(3_600));
    let day = Duration::from_secs(86_400);
    assert_eq!(Quota::per_day(5).period(), day);
    assert_eq!(Quota::per_week(5).period(), 7 * day);
    assert_eq!(Quota::per_month(5).period(), 30 * day);
    assert_eq!(Quota::per_year(5).period(), 365 * day);
}

/// Asserts that the text of an error names the value.
#[test]
fn errors_name_the_value() {
    let cases = [
        (Quota::try_new(10_000_001, SECOND), "10000001 units per 1s"),
        (Quota::try_new(1, Duration::from_micros(5)), "5µs"),
        (Quota::per_second(1).try_burst(1 << 51), "2251799813685248"),
        (
            Quota::per_second(1_000_001).try_algorithm(Algorithm::SlidingLog),
            "1000001",
        ),
        (
            Quota::per_second(1).fixed_window().try_burst(2),
            "fixed window",
        ),
        (Quota::per_second(1).fixed_window().try_offset(SECOND), "1s"),
        (Quota::per_day(1).try_divided(400), "400 instances"),
        (Quota::try_concurrent(10_001), "10001 units"),
        (
            Quota::concurrent(1).try_ttl(Duration::from_millis(99)),
            "99ms",
        ),
        (
            Quota::concurrent(1).try_ttl(SECOND * 40_000_000),
            "40000000s",
        ),
        (Quota::per_minute(1).try_ttl(SECOND), "token bucket"),
        (Quota::concurrent(1).try_burst(2), "concurrency limit"),
    ];
    for (quota, named) in cases {
        let text = quota.unwrap_err().to_string();
        assert!(text.contains(named), "{text:?} does not name {named:?}");
    }
}

#[test]
#[should_panic(expected = "a quota of 0 admits nothing")]
fn literal_zero_panics() {
    let _ = Quota::per_minute(std::hint::black_box(0));
}

#[test]
#[should_panic(expected = "a window has no burst")]
fn literal_burst_on_window_panics() {
    let _ = Quota::per_minute(5)
        .fixed_window()
        .burst(std::hint::black_box(5));
}

#[test]
fn share_of_hold_keeps_its_expiry() {
    let ten = Quota::concurrent(10).ttl(SECOND * 5);
    assert_eq!(ten.divided(3), Quota::concurrent(3).ttl(SECOND * 5));
    assert_eq!(ten.divided(1_000), Quota::concurrent(1).ttl(SECOND * 5));
}

#[test]
fn percentages_keep_algorithm_and_round_down() {
    let windows = Quota::per_minute(10).fixed_window();
    assert_eq!(windows.percent(100), Some(windows));
    assert_eq!(
        windows.percent(39),
        Some(Quota::per_minute(3).fixed_window())
    );
    assert_eq!(windows.percent(9), None);
    let bucket = Quota::per_second(10).burst(25);
    assert_eq!(bucket.percent(30).unwrap().capacity(), 7);
    assert_eq!(
        bucket.percent(30).unwrap().window(),
        Duration::from_micros(2_333_334)
    );
    assert_eq!(bucket.percent(3), None);
    let holds = Quota::concurrent(10).ttl(Duration::from_secs(5));
    assert_eq!(
        holds.percent(50),
        Some(Quota::concurrent(5).ttl(Duration::from_secs(5)))
    );
}
