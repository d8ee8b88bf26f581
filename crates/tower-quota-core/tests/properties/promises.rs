//! Tests that the promises of a decision hold to the microsecond, for any quota.

use std::time::Duration;

use proptest::prelude::{prop_assert, prop_assert_eq, proptest};
use tower_quota_core::{Charge, Entry, Operation, Outcome, Quota, Timestamp};

use super::config;
use super::trace::{KEY, Play, micros, quota, requests};

proptest! {
    #![proptest_config(config())]

    #[test]
    fn refused_request_fits_exactly_at_retry(quota in quota(), trace in requests(40)) {
        let mut play = Play::new(quota);
        for request in trace {
            let cost = play.arrive(request);
            for charge in [play.charge(cost), play.charge(cost).max_wait(Duration::ZERO)] {
                let decision = play.peek_at(play.now, charge);
                let Some(retry) = decision.retry_after() else { continue };
                prop_assert!(retry > Duration::ZERO);
                let then = play.now + micros(retry);
                prop_assert!(play.peek_at(then, charge).is_allowed(), "{:?} was not long enough", retry);
                let just_before = play.peek_at(then - 1, charge);
                prop_assert!(!just_before.is_allowed(), "{:?} was longer than needed", retry);
                prop_assert!(
                    then - 1 == play.now || just_before.retry_after() == Some(Duration::from_micros(1)),
                    "{:?}", just_before
                );
            }
            play.check(cost);
        }
    }

    #[test]
    fn wait_is_within_max_wait(quota in quota(), trace in requests(40), longest in 0..10_000_000_u64) {
        let mut play = Play::new(quota);
        for request in trace {
            let cost = play.arrive(request);
            let longest = Duration::from_micros(longest);
            let decision = play.peek_at(play.now, play.charge(cost).max_wait(longest));
            match decision.outcome() {
                Outcome::Wait(wait) => prop_assert!(wait <= longest && !wait.is_zero()),
                Outcome::Refuse(retry) => {
                    let later = play.peek_at(play.now + micros(retry), play.charge(cost).max_wait(longest));
                    prop_assert!(later.is_allowed());
                    prop_assert!(later.wait() <= longest);
                    let sooner = play.peek_at(play.now + micros(retry) - 1, play.charge(cost).max_wait(longest));
                    prop_assert!(!sooner.is_allowed());
                }
                Outcome::Allow => {}
                other => prop_assert!(false, "{other:?} for a cost within the capacity"),
            }
            play.check(cost);
        }
    }

    #[test]
    fn remaining_units_fit_exactly(quota in quota(), trace in requests(40)) {
        let mut play = Play::new(quota);
        for request in trace {
            let cost = play.arrive(request);
            let decision = play.check(cost);
            let left = decision.statuses()[0].remaining();
            prop_assert!(left <= quota.capacity());
            prop_assert!(play.peek_at(play.now, play.charge(left)).is_allowed());
            let more = play.peek_at(play.now, play.charge(left + 1));
            prop_assert!(!more.is_allowed());
            prop_assert_eq!(more.outcome() == Outcome::Never, left == quota.capacity());
        }
    }

    #[test]
    fn limit_is_full_exactly_at_reset(quota in quota(), trace in requests(40)) {
        let mut play = Play::new(quota);
        for request in trace {
            let cost = play.arrive(request);
            let reset = play.check(cost).statuses()[0].reset_after();
            let at = |now| play.peek_at(now, play.charge(0)).statuses()[0];
            let then = play.now + micros(reset);
            prop_assert_eq!(at(then).remaining(), quota.capacity());
            prop_assert_eq!(at(then).reset_after(), Duration::ZERO);
            prop_assert_eq!(play.entry.full_at().as_micros().max(play.now), then);
            if reset > Duration::ZERO {
                prop_assert!(at(then - 1).remaining() < quota.capacity());
                prop_assert_eq!(at(then - 1).reset_after(), Duration::from_micros(1));
            }
        }
    }
}

/// Asserts that a refused partial grant waits for one unit, even after the refusal took all units.
#[test]
fn counted_partial_grant_waits_for_one_unit() {
    let (ten, spent) = (Quota::per_minute(10), Quota::per_hour(1));
    let mut entry = Entry::default();
    let now = Timestamp::from_micros(1_763_683_200_000_000);
    let partial = Charge::new("ten", &ten, &KEY).at_most().count_refusals();
    let other = Charge::new("spent", &spent, &KEY);
    entry.decide(Operation::Check, &[partial.cost(6), other], now);
    let refused = entry.decide(Operation::Check, &[partial.cost(8), other], now);
    let status = refused.statuses()[0];
    assert_eq!(status.remaining(), 0);
    assert_eq!(status.outcome, Outcome::Refuse(Duration::from_secs(6)));
}
