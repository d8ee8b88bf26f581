//! Settling together with the other settings of a limit.

use std::convert::Infallible;

use http::{Request, Response};
use tower::{Layer, Service, ServiceExt, service_fn};
use tower_quota::settle::{Reservation, by_handler, only_failures};
use tower_quota::{
    Key, Limit, MemoryStore, OnStoreFailure, Penalty, Policy, Quota, RateLimitLayer, Store,
    store::Charge,
};
use tower_quota_testkit::ManualClock;

use crate::fixture::{ScriptedStore, StoreControl};
use crate::shared::{answer_of, answer_to, per_hour, policy_of, secs};

/// Returns a handler that sets this cost for the limit `tokens`.
fn handler_settling(
    cost: u64,
) -> impl Service<Request<()>, Response = Response<()>, Error = Infallible, Future: Send> + Clone {
    service_fn(move |request: Request<()>| {
        assert!(
            request
                .extensions()
                .get::<Reservation>()
                .unwrap()
                .settle("tokens", cost)
        );
        async { Ok(Response::new(())) }
    })
}

fn left(store: &MemoryStore, quota: Quota) -> u64 {
    let Ok(decision) = store
        .check(&[Charge::new("tokens", &quota, &Key::EVERYONE).cost(0)])
        .into_inner();
    decision.statuses()[0].remaining()
}

/// Sends one request under these limits, and returns its store.
async fn settled(policy: Policy, cost: u64) -> ScriptedStore {
    let store = ScriptedStore::new();
    let service = RateLimitLayer::new(store.clone(), policy).layer(handler_settling(cost));
    assert_eq!(answer_of(&service).await.status(), 200);
    store
}

#[tokio::test]
async fn partial_grant_settles_units_taken() {
    let quota = Quota::per_hour(60);
    let rows = || {
        Limit::new("tokens", quota)
            .cost(100)
            .at_most()
            .settle(by_handler())
    };
    for (cost, left, calls) in [
        (10, 50, vec![("refund", vec![50])]),
        (60, 0, vec![]),
        (61, 0, vec![("charge", vec![1])]),
    ] {
        let store = settled(policy_of(rows()), cost).await;
        assert_eq!(
            (store.left("tokens", quota), store.settled()),
            (left, calls),
            "{cost}"
        );
    }
}

#[tokio::test]
async fn run_time_quota_gets_its_refund() {
    let tier = Quota::per_hour(500);
    let limit = per_hour("tokens", 100)
        .cost(100)
        .quota_with(move |_| Some(tier));
    for (cost, left) in [(30, 470), (0, 500), (450, 50)] {
        let store = settled(policy_of(limit.clone().settle(by_handler())), cost).await;
        assert_eq!(store.left("tokens", tier), left);
    }
}

#[tokio::test]
async fn nested_limits_of_one_name_settle() {
    let (outer, inner) = (ScriptedStore::new(), ScriptedStore::new());
    let tokens = |estimate| policy_of(per_hour("tokens", 100).cost(estimate).settle(by_handler()));
    let service = RateLimitLayer::new(inner.clone(), tokens(10)).layer(handler_settling(4));
    let service = RateLimitLayer::new(outer.clone(), tokens(3)).layer(service);
    answer_of(&service).await;
    assert_eq!(
        (inner.settled(), outer.settled()),
        (vec![("refund", vec![6])], vec![("charge", vec![1])])
    );
}

#[tokio::test]
async fn recovered_store_ignores_local_charges() {
    let (quota, clock) = (Quota::per_hour(100), ManualClock::default());
    let (store, local) = (
        ScriptedStore::with_clock(clock.clone()),
        MemoryStore::with_clock(10, clock),
    );
    let policy = policy_of(
        Limit::new("tokens", quota)
            .cost(10)
            .settle(by_handler())
            .on_store_failure(OnStoreFailure::Local),
    );
    for (cost, here) in [(25, 75), (5, 70)] {
        store.fail(true);
        let recovering = store.clone();
        let handler = service_fn(move |request: Request<()>| {
            recovering.fail(false);
            handler_settling(cost).call(request)
        });
        let layer = RateLimitLayer::new(store.clone(), policy.clone()).local_store(local.clone());
        layer
            .layer(handler)
            .oneshot(Request::new(()))
            .await
            .unwrap();
        let there = store
            .check(&[Charge::new("tokens", &quota, &Key::EVERYONE).cost(0)])
            .await
            .unwrap();
        assert_eq!(
            (there.statuses()[0].remaining(), left(&local, quota)),
            (100, here)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn turn_taken_settles_only_its_limit() {
    let queue = Limit::new("queue", Quota::per_second(2).leaky_bucket().queue(9));
    let tokens = per_hour("tokens", 100).cost(10).settle(by_handler());
    let store = ScriptedStore::new();
    let layer = RateLimitLayer::new(store.clone(), policy_of(queue).limit(tokens));
    let service = layer.layer(handler_settling(4));
    for calls in 1..=3 {
        answer_of(&service).await;
        assert_eq!(store.settled(), vec![("refund", vec![6]); calls]);
    }
}

#[tokio::test]
async fn refunds_remove_no_strikes() {
    let penalty = Penalty::after(1).step(secs(7_200));
    let login = per_hour("login", 1)
        .settle(only_failures())
        .penalty(penalty);
    let store = ScriptedStore::new();
    let handler = service_fn(|request: Request<()>| async move {
        let status = if request.uri().path() == "/wrong" {
            401
        } else {
            200
        };
        Ok::<_, Infallible>(Response::builder().status(status).body(()).unwrap())
    });
    let service = RateLimitLayer::new(store.clone(), policy_of(login)).layer(handler);
    let status = async |path: &str| {
        let request = Request::get(path).body(()).unwrap();
        answer_to(&service, request).await.status().as_u16()
    };
    // Successful logins are never counted. For failed ones, the second refusal blocks.
    for (path, expected) in [
        ("/", 200),
        ("/", 200),
        ("/wrong", 401),
        ("/", 429),
        ("/", 429),
    ] {
        assert_eq!(status(path).await, expected, "{path}");
    }
    store.clock().advance(secs(3_601));
    assert_eq!(status("/").await, 429, "blocked for two hours");
    store.clock().advance(secs(4 * 3_600));
    assert_eq!(status("/").await, 200);
}

#[tokio::test]
async fn absurd_costs_are_debts() {
    let day = Quota::per_day(100);
    for quota in [
        day,
        day.gcra(),
        day.leaky_bucket(),
        day.fixed_window(),
        day.sliding_window(),
        day.sliding_log(),
    ] {
        let store = settled(
            policy_of(Limit::new("tokens", quota).settle(by_handler())),
            u64::MAX,
        )
        .await;
        assert_eq!(store.left("tokens", quota), 0);
        let service = RateLimitLayer::new(store.clone(), policy_of(Limit::new("tokens", quota)))
            .layer(handler_settling(1));
        let refused = answer_of(&service).await;
        assert_eq!(refused.status(), 429, "{quota:?}");
    }
}
