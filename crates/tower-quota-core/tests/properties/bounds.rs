//! Tests that no interval has more units than the quota allows.

use std::time::Duration;

use proptest::prelude::{prop_assert, proptest};
use tower_quota_core::{Algorithm, Charge, ChargeMode, Entry, Key, Operation, Quota, Timestamp};

use super::config;
use super::trace::{Play, micros, quota, requests};

/// Returns the most units that an algorithm promises to admit from `first` to `last`, both included.
pub(crate) fn most(quota: &Quota, first: u64, last: u64) -> u128 {
    let (units, period, capacity) = (
        u128::from(quota.units()),
        micros(quota.period()),
        u128::from(quota.capacity()),
    );
    let span = u128::from(last - first);
    match quota.algorithm() {
        Algorithm::TokenBucket | Algorithm::Gcra | Algorithm::LeakyBucket => {
            capacity + span * units / u128::from(period)
        }
        Algorithm::FixedWindow => match quota.window_offset() {
            Some(offset) => {
                let window = |at: u64| u128::from((at + period - offset) / period);
                units * (window(last) - window(first) + 1)
            }
            // The starts of two windows are at least a period apart.
            None => units * (span / u128::from(period) + 2),
        },
        Algorithm::SlidingWindow => {
            let window = |at: u64| u128::from(at / period);
            units * (window(last) - window(first) + 1)
        }
        Algorithm::SlidingLog => units * (span / u128::from(period) + 1),
        other => unreachable!("no bound is known for a {other}"),
    }
}

/// Returns whether a window starts with a request, so that a refund of its first charge cannot move the start.
pub(crate) fn starts_with_request(quota: &Quota) -> bool {
    quota.window_offset().is_none()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn no_interval_holds_more_than_its_bound(quota in quota(), trace in requests(80)) {
        let mut play = Play::new(quota);
        let mut admitted: Vec<(u64, u64)> = Vec::new();
        for request in trace {
            let cost = play.arrive(request);
            if play.check(cost).is_allowed() {
                admitted.push((play.now, cost));
            }
        }
        for (i, &(first, _)) in admitted.iter().enumerate() {
            let mut total = 0_u128;
            for &(last, cost) in &admitted[i..] {
                total += u128::from(cost);
                let most = most(&quota, first, last);
                prop_assert!(total <= most, "{} units from {} to {}, above {}", total, first, last, most);
            }
        }
    }

    #[test]
    fn sliding_window_estimate_stays_within_quota(
        quota in super::trace::quota_by(Algorithm::SlidingWindow),
        trace in requests(80),
    ) {
        let period = micros(quota.period());
        let mut play = Play::new(quota);
        let mut admitted: Vec<(u64, u64)> = Vec::new();
        for request in trace {
            let cost = play.arrive(request);
            if !play.check(cost).is_allowed() {
                continue;
            }
            admitted.push((play.now, cost));
            let window = play.now / period;
            let count = |which: u64| {
                let inside = admitted.iter().filter(|(at, _)| at / period == which);
                inside.map(|(_, cost)| u128::from(*cost)).sum::<u128>()
            };
            let overlap = u128::from(period - play.now % period);
            let estimate = count(window - 1) * overlap + count(window) * u128::from(period);
            prop_assert!(estimate <= u128::from(quota.units()) * u128::from(period));
        }
    }
}

#[test]
fn log_in_debt_keeps_its_length() {
    let quota = Quota::per_minute(10).sliding_log();
    let mut entry = tower_quota_core::Entry::default();
    for micros in 0..20_000 {
        let now = tower_quota_core::Timestamp::from_micros(1_763_683_200_000_000 + micros);
        entry.decide(
            tower_quota_core::Operation::Charge,
            &[tower_quota_core::Charge::new(
                "log",
                &quota,
                &super::trace::KEY,
            )],
            now,
        );
    }
    assert!(
        entry.encode().len() < 10_010 * 14,
        "{} bytes",
        entry.encode().len()
    );
}

#[test]
fn forced_bucket_debt_ends_at_longest_wait() {
    let (quota, key) = (Quota::per_minute(6), Key::EVERYONE);
    let charge = Charge::new("minute", &quota, &key)
        .cost(4)
        .in_mode(ChargeMode::Forced);
    let now = Timestamp::from_micros(1_763_712_000_000_000);
    let (mut bounded, mut unbounded) = (Entry::default(), Entry::default());
    let longest = Duration::from_secs(30);
    for (taken, debt, unbounded_debt) in [(4, 0, 0), (4, 2, 2), (1, 3, 6), (0, 3, 10)] {
        let decision = bounded.decide(Operation::Check, &[charge.max_wait(longest)], now);
        let status = decision.statuses()[0];
        assert_eq!((status.taken, status.debt()), (taken, debt));
        let decision = unbounded.decide(Operation::Check, &[charge], now);
        assert_eq!(decision.statuses()[0].debt(), unbounded_debt);
    }
}

#[test]
fn forced_debt_of_windows_ends_at_longest_wait() {
    let (now, key) = (Timestamp::from_micros(1_763_712_000_000_000), Key::EVERYONE);
    for quota in [
        Quota::per_minute(6).fixed_window(),
        Quota::per_minute(6).sliding_window(),
        Quota::per_minute(6).sliding_log(),
    ] {
        let charge = Charge::new("minute", &quota, &key)
            .cost(4)
            .in_mode(ChargeMode::Forced)
            .max_wait(Duration::from_secs(30));
        let mut entry = Entry::default();
        for (taken, debt) in [(4, 0), (4, 2), (1, 3), (0, 3)] {
            let decision = entry.decide(Operation::Check, &[charge], now);
            let status = decision.statuses()[0];
            assert_eq!((status.taken, status.debt()), (taken, debt), "{quota:?}");
        }
    }
}
