//! Tests a rolling deployment that changes the algorithm of a limit, or the period of a window or log.

use std::time::Duration;

use tower_quota_core::{Charge, Entry, Operation, Quota, Timestamp};

use super::trace::KEY;

/// An instant within a minute, in microseconds since the epoch.
const START: u64 = 1_763_683_223_456_789;
const TEN_MINUTES: u64 = 600_000_000;

/// The admitted requests of ten minutes, and the longest time from one admission to the next.
#[derive(Debug)]
struct Admissions {
    count: u64,
    longest: Duration,
}

/// Sends a request to each version in turn.
fn admissions(versions: &[Quota], pause: Duration) -> Admissions {
    let pause = u64::try_from(pause.as_micros()).unwrap();
    let (mut entry, mut count, mut last, mut longest) = (Entry::default(), 0, 0, 0);
    for (now, quota) in (0..TEN_MINUTES / pause).zip(versions.iter().cycle()) {
        let now = now * pause;
        let charge = Charge::new("limit", quota, &KEY);
        let at = Timestamp::from_micros(START + now);
        if entry.decide(Operation::Check, &[charge], at).is_allowed() {
            longest = longest.max(now - last);
            (count, last) = (count + 1, now);
        }
    }
    Admissions {
        count,
        longest: Duration::from_micros(longest.max(TEN_MINUTES - last)),
    }
}

fn pairs() -> Vec<[Quota; 2]> {
    let minute = Quota::per_minute(60);
    let ten = Quota::new(600, Duration::from_secs(600));
    let quotas = [
        minute,
        minute.fixed_window(),
        minute.fixed_window().from_first_request(),
        minute.sliding_window(),
        minute.sliding_log(),
        ten.sliding_window(),
        ten.sliding_log(),
    ];
    let others = |old: usize| (0..quotas.len()).filter(move |&new| new != old);
    let pairs = (0..quotas.len()).flat_map(|old| others(old).map(move |new| [old, new]));
    pairs.map(|pair| pair.map(|quota| quotas[quota])).collect()
}

/// Returns pairs of a slower and a faster quota.
fn pairs_of_rates() -> Vec<[Quota; 2]> {
    let (minute, seconds) = (Quota::per_minute(60), Duration::from_secs);
    let slow = [
        Quota::per_hour(60),
        Quota::per_hour(60).leaky_bucket(),
        Quota::new(1, seconds(10)),
        Quota::per_minute(20).burst(5),
        Quota::per_minute(20).sliding_window(),
        Quota::new(3, seconds(20)).fixed_window(),
    ];
    let fast = [
        minute,
        minute.fixed_window(),
        minute.sliding_window(),
        minute.sliding_log(),
    ];
    let pairs = slow.into_iter();
    let pairs = pairs.flat_map(|slow| fast.map(|fast| [[slow, fast], [fast, slow]]));
    pairs.flatten().collect()
}

/// Asserts that a client at a third of its limit is never refused, whatever the versions.
#[test]
fn slow_client_is_admitted_throughout_rollout() {
    for versions in pairs() {
        let found = admissions(&versions, Duration::from_secs(3));
        assert_eq!(found.count, 200, "{found:?} by {versions:?}");
    }
}

/// Asserts that a client far over its limit gets at least the rate, and at most both quotas.
#[test]
fn spent_client_is_not_starved_by_rollout() {
    for pause in [250, 20].map(Duration::from_millis) {
        for versions in pairs() {
            let alone = versions.map(|version| admissions(&[version], pause).count);
            let found = admissions(&versions, pause);
            assert!(found.count >= 600, "{found:?} by {versions:?}");
            assert!(
                found.count <= alone[0] + alone[1],
                "{found:?}, not {alone:?}, by {versions:?}"
            );
            assert!(
                found.longest <= Duration::from_secs(60),
                "{found:?} by {versions:?}"
            );
        }
    }
}

/// Asserts that versions with different rates and capacities give a client at least the slower version.
#[test]
fn different_rates_lock_no_client_out() {
    for pause in [250, 20].map(Duration::from_millis) {
        for versions in pairs_of_rates() {
            let [one, other] = versions.map(|version| admissions(&[version], pause));
            let found = admissions(&versions, pause);
            let least = one.count.min(other.count);
            let longest = one.longest.max(other.longest);
            assert!(found.count >= least, "{found:?} by {versions:?}");
            assert!(found.longest <= longest, "{found:?} by {versions:?}");
        }
    }
}

/// Asserts that a client who polls at about the rate gets at least half of it, because a conversion delays a unit.
#[test]
fn polls_at_rate_get_half_of_rate() {
    for pause in [900, 700].map(Duration::from_millis) {
        for versions in [pairs(), pairs_of_rates()].concat() {
            let alone = versions.map(|version| admissions(&[version], pause).count);
            let found = admissions(&versions, pause);
            assert!(
                found.count * 2 >= alone[0].min(alone[1]),
                "{found:?}, not {alone:?}, by {versions:?}"
            );
            assert!(
                found.longest <= Duration::from_secs(60) + pause,
                "{found:?} by {versions:?}"
            );
        }
    }
}

/// Asserts that the retry time of each version holds, although the other version has counted the client.
#[test]
fn request_of_another_version_fits_at_retry() {
    for versions in [pairs(), pairs_of_rates()].concat() {
        for max_wait in [0, 5, 3_600].map(Duration::from_secs) {
            let mut entry = Entry::default();
            for (step, quota) in (0..600).zip(versions.iter().cycle()) {
                let charges = [Charge::new("limit", quota, &KEY).max_wait(max_wait)];
                let at = Timestamp::from_micros(START) + Duration::from_millis(250) * step;
                let decision = entry.decide(Operation::Check, &charges, at);
                let Some(retry) = decision.retry_after() else {
                    continue;
                };
                let later = entry.decide(Operation::Peek, &charges, at + retry);
                assert!(later.is_allowed(), "not after {retry:?} by {versions:?}");
                if max_wait.is_zero() {
                    // With a wait, a sliding window may fit sooner by a part of a unit.
                    let sooner = at + retry.saturating_sub(Duration::from_micros(1));
                    let sooner = entry.decide(Operation::Peek, &charges, sooner);
                    assert!(!sooner.is_allowed(), "before {retry:?} by {versions:?}");
                }
            }
        }
    }
}

/// Asserts that units of another algorithm come back one by one, at the rate of the new quota.
#[test]
fn converted_units_come_back_at_new_rate() {
    let (bucket, hour) = (Quota::per_hour(1_000), Duration::from_secs(3_600));
    for new in [bucket.sliding_log(), bucket.sliding_window()] {
        let mut entry = Entry::default();
        let start = START - START % 3_600_000_000;
        let mut left = |operation, quota, cost, after: Duration| {
            let charge = Charge::new("limit", quota, &KEY).cost(cost);
            let at = Timestamp::from_micros(start) + after;
            entry.decide(operation, &[charge], at).statuses()[0].remaining()
        };
        left(Operation::Check, &bucket, 999, Duration::ZERO);
        assert_eq!(left(Operation::Check, &new, 1, Duration::ZERO), 0);
        for percent in 0..=100 {
            let back = left(Operation::Peek, &new, 1, hour * percent / 100);
            let most = u64::from(10 * percent);
            // The converted log merges stamps, so some units are late by an eighth.
            assert!(back <= most, "{back} of {most} units by {new:?}");
            assert!(
                back + 1 >= most * 8 / 9,
                "{back} of {most} units by {new:?}"
            );
        }
    }
}

/// Asserts the figures of two bursts that the upgrading guide gives.
#[test]
fn smaller_full_burst_gives_larger_burst_again() {
    let minute = Quota::per_minute(60);
    let (small, large) = (minute.burst(5), minute.burst(60));
    let hour = Duration::from_secs(3_600);
    let (mut entry, mut admitted) = (Entry::default(), 0);
    for step in 0..720 {
        let at = Timestamp::from_micros(START) + hour / 720 * step;
        let mut check = |quota, cost| {
            let charge = Charge::new("limit", quota, &KEY).cost(cost);
            entry.decide(Operation::Check, &[charge], at).is_allowed()
        };
        admitted += u64::from(check(&large, 60)) * 60;
        // The refusal leaves a bucket that is full after five seconds.
        assert!(!check(&small, 1));
    }
    assert_eq!(admitted, 43_200);
}
