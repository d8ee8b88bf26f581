//! Plays the cases that are described in words. Every case has a function.

use std::time::Duration;

use tower_quota_core::{Algorithm, ConfigError, Operation, Outcome, Quota, Store};

use super::TestStore;
use super::case_client::{CaseClient, remaining, reset_after};

const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(86_400);

/// Plays a stated case, and returns whether the case has a function.
///
/// If tower-quota differs on purpose, the function asserts the answer of tower-quota.
pub(crate) async fn play<S: Store>(test_store: &TestStore<S>, id: &str) -> bool {
    match id {
        "gcra-04-allow-at-most" => at_most(test_store, id).await,
        "gcra-17-overflow" => overflow(test_store, id).await,
        "tb-15-concurrent" => simultaneous(test_store, id).await,
        "tb-17-interval-to-rate" => interval_to_rate(test_store, id).await,
        "tb-31-dotnet-retry" => retry_of_two(test_store, id).await,
        "tb-33-dotnet-zero-cost" => zero_cost(test_store, id).await,
        "b4j-46-blocking-limit" => take_or_wait(test_store, id).await,
        "swc-13-stale-replica" => stale_replica(test_store, id).await,
        "swc-15-delayed-commit" => delayed_commit(test_store, id).await,
        "log-06" => huge_cost(test_store, id).await,
        "fw-09-cost" => costs(test_store, id).await,
        "fw-15-ttl-always" => constantly_busy(test_store, id).await,
        "cr-12-refund-seq" => refunds(test_store, id).await,
        "cr-14-cached-last-token" => last_token(test_store, id).await,
        "multi-02-day-hour" => day_and_hour(test_store, id).await,
        "multi-04-union-burns" => union_burns_nothing(test_store, id).await,
        "http-04-nginx-delay" => delay_after_some(test_store, id).await,
        "http-08-even-spread" => even_spread(test_store, id).await,
        _ => return false,
    }
    true
}

async fn at_most<S: Store>(test_store: &TestStore<S>, id: &str) {
    let bucket = test_store.client(
        id,
        &[Quota::new(1, Duration::from_millis(100)).burst(10).gcra()],
    );
    for (most, got, left, reset) in [
        (1, 1, 9, 100),
        (2, 2, 7, 300),
        (10, 7, 0, 1_000),
        (1_000, 0, 0, 1_000),
    ] {
        let (taken, decision) = bucket.drain(most).await;
        assert_eq!((taken, remaining(&decision)), (got, left));
        assert_eq!(reset_after(&decision), Duration::from_millis(reset));
    }
    assert_eq!(
        bucket.check(1).await.retry_after(),
        Some(Duration::from_millis(100))
    );
}

async fn overflow<S: Store>(test_store: &TestStore<S>, id: &str) {
    let bucket = test_store.client(id, &[Quota::per_day(1).burst(2).gcra()]);
    assert_eq!(bucket.check(200_000_000).await.outcome(), Outcome::Never);
    assert_eq!(remaining(&bucket.peek().await), 2);
    let capacity = 200_000_001;
    let error = ConfigError::NotRepresentable {
        units: 1,
        period: DAY,
        capacity,
    };
    assert_eq!(Quota::per_day(1).try_burst(capacity), Err(error));
    let period = Duration::from_secs(2_147_483_647);
    assert_eq!(Quota::try_new(1, period), Err(ConfigError::Period(period)));
}

async fn simultaneous<S: Store>(test_store: &TestStore<S>, id: &str) {
    let bucket = test_store.client(id, &[Quota::per_second(1).burst(5)]);
    let mut admitted = 0;
    let decided: Vec<_> = (0..15).map(|_| bucket.start(1)).collect();
    for decision in decided {
        admitted += u32::from(decision.await.unwrap().is_allowed());
    }
    assert_eq!(admitted, 5);
}

async fn interval_to_rate<S: Store>(test_store: &TestStore<S>, id: &str) {
    let every = Quota::new(1, Duration::from_millis(2_500));
    let bucket = test_store.client(id, &[every]);
    for admitted in 0..=4 {
        bucket.at(Duration::from_millis(2_500) * admitted);
        assert!(bucket.check(1).await.is_allowed());
        assert!(!bucket.check(1).await.is_allowed());
    }
    for none in [Duration::from_nanos(1), Duration::ZERO] {
        assert_eq!(Quota::try_new(1, none), Err(ConfigError::Period(none)));
    }
}

async fn retry_of_two<S: Store>(test_store: &TestStore<S>, id: &str) {
    let bucket = test_store.client(id, &[Quota::new(1, Duration::from_secs(20)).burst(2)]);
    assert!(bucket.check(2).await.is_allowed());
    assert_eq!(
        bucket.check(2).await.retry_after(),
        Some(Duration::from_secs(40))
    );
}

async fn zero_cost<S: Store>(test_store: &TestStore<S>, id: &str) {
    let bucket = test_store.client(id, &[Quota::per_second(1)]);
    for cost in [0, 1, 0] {
        assert!(bucket.check(cost).await.is_allowed());
    }
}

async fn take_or_wait<S: Store>(test_store: &TestStore<S>, id: &str) {
    let bucket = test_store.client(id, &[Quota::new(10, Duration::from_micros(100_000))]);
    bucket.charge(0, 9).await;
    let decision = bucket
        .check_with_max_wait(5, Duration::from_millis(40))
        .await;
    assert_eq!(decision.outcome(), Outcome::Wait(Duration::from_millis(40)));
    let fresh = test_store.client(&format!("{id} fresh"), &bucket.limits);
    let decision = fresh
        .check_with_max_wait(1_000, Duration::from_millis(11))
        .await;
    assert_eq!(
        (decision.is_allowed(), decision.wait()),
        (false, Duration::ZERO)
    );
}

async fn stale_replica<S: Store>(test_store: &TestStore<S>, id: &str) {
    // All replicas call the same store, so no replica can be stale.
    let limits = [Quota::new(162_000, Duration::from_secs(60)).sliding_window()];
    let (replica, others) = (
        test_store.client(id, &limits),
        test_store.client(id, &limits),
    );
    assert!(replica.check(1_500).await.is_allowed());
    others.charge(0, 160_000).await;
    replica.at(Duration::from_secs(30));
    for _ in 0..20 {
        assert!(!replica.check(1_500).await.is_allowed());
    }
}

async fn delayed_commit<S: Store>(test_store: &TestStore<S>, id: &str) {
    for (millis, left) in [(0, 80), (200, 100), (400, 120)] {
        let limits = [Quota::new(400, Duration::from_secs(3)).sliding_window()];
        let window = test_store.client(&format!("{id} {millis}"), &limits);
        window.charge(0, 300).await;
        window.at(Duration::from_millis(3_000 + millis));
        assert_eq!(remaining(&window.check(20).await), left);
    }
}

async fn huge_cost<S: Store>(test_store: &TestStore<S>, id: &str) {
    let two_seconds = |units| Quota::try_new(units, Duration::from_secs(2)).unwrap();
    let million = two_seconds(1_000_000).try_algorithm(Algorithm::SlidingLog);
    assert_eq!(million, Err(ConfigError::LogTooLong { units: 1_000_000 }));
    // Use the longest log that tower-quota allows.
    let log = test_store.client(id, &[two_seconds(10_000).sliding_log()]);
    for cost in [1, 9_999] {
        assert!(log.check(cost).await.is_allowed());
    }
    assert!(!log.check(1).await.is_allowed());
}

async fn costs<S: Store>(test_store: &TestStore<S>, id: &str) {
    let limits = [Quota::new(10, Duration::from_secs(120)).fixed_window()];
    let (one, two) = (
        test_store.client(&format!("{id} k1"), &limits),
        test_store.client(&format!("{id} k2"), &limits),
    );
    assert!(!one.check(11).await.is_allowed());
    let decision = two.check(5).await;
    assert_eq!((decision.is_allowed(), remaining(&decision)), (true, 5));
    for _ in 0..2 {
        assert!(!two.check(6).await.is_allowed());
    }
}

// `every_key_expires` asserts the other half of the case after all cases.
async fn constantly_busy<S: Store>(test_store: &TestStore<S>, id: &str) {
    let limits = [
        Quota::per_minute(1_000),
        Quota::per_hour(5_000).sliding_window(),
    ];
    let busy = test_store.client(id, &limits);
    let mut admitted = 0;
    for _ in 0..100 {
        let decided: Vec<_> = (0..20).map(|_| busy.start(1)).collect();
        for decision in decided {
            admitted += u32::from(decision.await.unwrap().is_allowed());
        }
    }
    assert_eq!(admitted, 1_000);
}

async fn refunds<S: Store>(test_store: &TestStore<S>, id: &str) {
    let ten = Quota::new(10, 2 * DAY);
    for (number, quota) in [ten, ten.fixed_window(), ten.sliding_window()]
        .into_iter()
        .enumerate()
    {
        let name = format!("{id} {number}");
        let client = test_store.client(&name, &[quota]);
        let back = Operation::Refund {
            taken_at: client.peek().await.at(),
        };
        assert_eq!(remaining(&client.check(8).await), 2);
        assert_eq!(remaining(&client.apply(back, 2).await), 4);
        assert_eq!(remaining(&client.apply(back, 3).await), 7);
        assert_eq!(remaining(&client.check(5).await), 2);

        // In the source, 13 and then 12 units remain.
        let fresh = test_store.client(&format!("{name} fresh"), &[quota]);
        assert_eq!(remaining(&fresh.apply(back, 3).await), 10);
        fresh.check(3).await;
        assert_eq!(remaining(&fresh.apply(back, 5).await), 10);
        // In tower-quota the first refusal charges no units, so the second request passes.
        let mut passed = Vec::new();
        for cost in [11, 1] {
            passed.push(fresh.check(cost).await.is_allowed());
        }
        fresh.apply(back, 5).await;
        passed.push(fresh.check(2).await.is_allowed());
        assert_eq!(passed, [false, true, true]);
    }
}

async fn last_token<S: Store>(test_store: &TestStore<S>, id: &str) {
    let window = test_store.client(id, &[Quota::per_minute(10).fixed_window()]);
    window.charge(0, 8).await;
    for left in [1, 0] {
        let decision = window.check(1).await;
        assert_eq!((decision.is_allowed(), remaining(&decision)), (true, left));
    }
    assert!(!window.check(1).await.is_allowed());
}

async fn day_and_hour<S: Store>(test_store: &TestStore<S>, id: &str) {
    let both = test_store.client(
        id,
        &[
            Quota::per_day(10).fixed_window(),
            Quota::per_hour(20).fixed_window(),
        ],
    );
    both.check(8).await;
    let left = |decision: &tower_quota_core::Decision| {
        decision
            .statuses()
            .iter()
            .map(|s| s.remaining())
            .collect::<Vec<_>>()
    };
    assert_eq!(left(&both.peek().await), [2, 12]);
    let refused = both.check(3).await;
    let fits: Vec<bool> = refused
        .statuses()
        .iter()
        .map(|standing| !standing.outcome.is_refusal())
        .collect();
    assert_eq!(fits, [false, true]);
    // In the source, 0 units of the day remain.
    assert_eq!(left(&refused), [2, 12]);
    assert_eq!(left(&both.peek().await), [2, 12]);
}

async fn union_burns_nothing<S: Store>(test_store: &TestStore<S>, id: &str) {
    let limits = [
        Quota::per_second(1).fixed_window(),
        Quota::new(2, Duration::from_secs(5)).fixed_window(),
    ];
    let union = test_store.client(id, &limits);
    let refused = union.check(2).await;
    assert!(!refused.is_allowed());
    assert_eq!(refused.statuses()[1].remaining(), 2);
    assert_eq!(union.peek().await.statuses()[1].remaining(), 2);
}

async fn delay_after_some<S: Store>(test_store: &TestStore<S>, id: &str) {
    // Admits two requests at once, makes the third wait for two seconds, and refuses the fourth.
    let bucket = test_store.client(id, &[Quota::per_minute(30).burst(2)]);
    let two = 2 * SECOND;
    for expected in [
        Outcome::Allow,
        Outcome::Allow,
        Outcome::Wait(two),
        Outcome::Refuse(two),
    ] {
        assert_eq!(bucket.check_with_max_wait(1, two).await.outcome(), expected);
    }
}

async fn even_spread<S: Store>(test_store: &TestStore<S>, id: &str) {
    let queue = test_store.client(id, &[Quota::new(2, Duration::from_secs(5)).leaky_bucket()]);
    assert_eq!(queue.check(1).await.wait(), Duration::ZERO);
    assert_eq!(queue.check(1).await.wait(), Duration::from_millis(2_500));
}

impl<S: Store> TestStore<S> {
    fn client(&self, name: &str, limits: &[Quota]) -> CaseClient<'_, S> {
        CaseClient::new(&self.store, &self.clock, name, limits)
    }
}
