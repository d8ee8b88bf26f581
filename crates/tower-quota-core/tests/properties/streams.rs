//! Compares the model with the textbook algorithms, request by request.

use proptest::prelude::{Strategy, prop_assert, prop_assert_eq, proptest};
use tower_quota_core::{Algorithm, Outcome, Quota};

use super::config;
use super::oracle::{Oracle, is_exact};
use super::trace::{Play, Request, micros, quota, quota_by, requests};

fn agrees(quota: Quota, trace: &[Request]) -> Result<(), proptest::test_runner::TestCaseError> {
    let (mut play, mut oracle) = (Play::new(quota), Oracle::new(&quota));
    for &request in trace {
        let cost = play.arrive(request);
        let fits = oracle.fits(&quota, play.now, cost);
        let decision = play.check(cost);
        prop_assert_eq!(
            decision.is_allowed(),
            fits,
            "{} units at {}: {:?}",
            cost,
            play.now,
            decision
        );
        if fits {
            let turn = oracle.take(&quota, play.now, cost);
            let wait = turn.div_ceil(quota.units().into()) - u128::from(play.now);
            prop_assert_eq!(decision.wait().as_micros(), wait);
        }
        let left = decision.statuses()[0].remaining();
        prop_assert!(
            left == 0 || oracle.fits(&quota, play.now, left),
            "{} are not left",
            left
        );
        prop_assert!(
            left == quota.capacity() || !oracle.fits(&quota, play.now, left + 1),
            "{} is not all",
            left
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn model_agrees_with_textbook(
        quota in quota().prop_filter("counted in its own ratio", is_exact),
        trace in requests(60),
    ) {
        agrees(quota, &trace)?;
    }

    #[test]
    fn queue_starts_requests_evenly(quota in quota_by(Algorithm::LeakyBucket), trace in requests(60)) {
        let mut play = Play::new(quota);
        let mut before: Option<(u64, u64)> = None;
        for request in trace {
            let cost = play.arrive(request);
            let decision = play.check(cost);
            if !decision.is_allowed() {
                continue;
            }
            prop_assert!(!matches!(decision.outcome(), Outcome::Wait(wait) if wait.is_zero()));
            let start = play.now + micros(decision.wait());
            if let Some((earlier, its_cost)) = before {
                // Starts are rounded up to a microsecond, so two starts may seem closer by less
                // than a microsecond.
                let apart = u128::from(start - earlier + 1) * u128::from(quota.units());
                let due = u128::from(its_cost) * u128::from(micros(quota.period()));
                prop_assert!(apart > due, "{} starts at {} and the next at {}", its_cost, earlier, start);
            }
            before = Some((start, cost));
        }
    }
}
