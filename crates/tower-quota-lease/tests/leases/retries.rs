//! Tests clients that wait for the retry time.

use std::time::Duration;

use tower_quota_core::{Charge, Quota};
use tower_quota_dev::simulation::run;

use crate::{LIMIT, check, instance_over, key};

/// Lets time pass to the microsecond, although timers have steps of a millisecond.
async fn pass_exactly(span: Duration) {
    tokio::time::advance(span).await;
}

/// Sends requests one by one at three times the quota, and retries each after its retry time.
///
/// Returns the number of retries, and the number of refused retries.
async fn obey(quota: Quota, cost: u64, delay: Duration) -> (u64, u64) {
    let (_, store) = instance_over(delay..2 * delay);
    let gap =
        quota.period() * u32::try_from(cost).unwrap() / u32::try_from(3 * quota.units()).unwrap();
    let (mut retries, mut refused) = (0, 0);
    let mut is_retry = false;
    for _ in 0..3_000 {
        let decision = check(&store, &[Charge::new(LIMIT, &quota, &key(1)).cost(cost)]).await;
        retries += u64::from(is_retry);
        refused += u64::from(is_retry && !decision.is_allowed());
        is_retry = !decision.is_allowed();
        pass_exactly(decision.retry_after().unwrap_or(gap)).await;
    }
    (retries, refused)
}

#[test]
fn obeyed_retry_time_admits_client() {
    let (fast, slow) = (Duration::from_micros(300), Duration::from_millis(5));
    for (quota, cost, delay) in [
        (Quota::per_second(100), 1, fast),
        (Quota::per_second(100), 3, fast),
        (Quota::per_second(100), 7, slow),
        (Quota::per_second(1_000), 1, fast),
        (Quota::per_second(1_000), 40, slow),
        (Quota::per_minute(6_000).burst(1_000), 1, fast),
        (Quota::per_minute(6_000).burst(1_000), 7, slow),
    ] {
        let (retries, refused) = run(obey(quota, cost, delay));
        assert!(retries > 100, "{quota:?}, cost {cost}: {retries} retries");
        assert_eq!(refused, 0, "{quota:?}, cost {cost}: of {retries} retries");
    }
}
