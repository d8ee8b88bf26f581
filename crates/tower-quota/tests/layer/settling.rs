//! Costs that handlers set, and the time at which they are settled.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use http::{Request, Response};
use tower::{Layer, ServiceExt, service_fn};
use tower_quota::settle::{Reservation, Settle, by_handler};
use tower_quota::{
    Decision, Key, Limit, MemoryStore, OnStoreFailure, Policy, Quota, RateLimitLayer, Store,
    store::Charge,
};
use tower_quota_testkit::ManualClock;

use crate::fixture::{ScriptedStore, StoreControl, slow_store};
use crate::shared::{answer_of, per_minute, policy_of, secs};

fn hundred() -> Quota {
    Quota::per_hour(100)
}

fn tokens() -> Limit {
    Limit::new("tokens", hundred())
        .cost(10)
        .settle(by_handler())
}

/// Sends one request to a handler that does this with its reservation.
async fn request(
    store: &ScriptedStore,
    policy: Policy,
    handler: impl Fn(&Reservation) + Clone + Send + 'static,
) {
    let inner = service_fn(move |request: Request<()>| {
        handler(&request.extensions().get().cloned().unwrap_or_default());
        async { Ok::<_, Infallible>(Response::new(())) }
    });
    let service = RateLimitLayer::new(store.clone(), policy).layer(inner);
    assert_eq!(answer_of(&service).await.status(), 200);
}

#[tokio::test]
async fn settled_difference_is_refunded_or_charged() {
    for (actual, left, settled) in [
        (3, 97, vec![("refund", vec![7])]),
        (0, 100, vec![("refund", vec![10])]),
        (10, 90, vec![]),
        (25, 75, vec![("charge", vec![15])]),
    ] {
        let store = ScriptedStore::new();
        request(&store, policy_of(tokens()), move |reservation| {
            assert_eq!(reservation.estimate("tokens"), Some(10));
            assert!(reservation.settle("tokens", actual));
        })
        .await;
        assert_eq!(
            (store.left("tokens", hundred()), store.settled()),
            (left, settled),
            "{actual}"
        );
    }
}

#[tokio::test]
async fn settled_cost_beyond_quota_becomes_debt() {
    let store = ScriptedStore::new();
    request(&store, policy_of(tokens()), |reservation| {
        _ = reservation.settle("tokens", 150)
    })
    .await;
    let quota = hundred();
    let Ok(decision) = store
        .memory()
        .check(&[Charge::new("tokens", &quota, &Key::EVERYONE)])
        .into_inner();
    // 51 units take 36 seconds each.
    assert_eq!(decision.retry_after().unwrap(), secs(51 * 36));
}

#[tokio::test]
async fn last_settlement_counts_at_the_end() {
    let store = ScriptedStore::new();
    let seen = store.clone();
    request(&store, policy_of(tokens()), move |reservation| {
        let another = reservation.clone();
        reservation.refund();
        assert!(another.settle("tokens", 70));
        reservation.keep();
        assert!(another.settle("tokens", 4));
        drop(another);
        assert!(seen.settled().is_empty());
    })
    .await;
    assert_eq!(store.settled(), [("refund", vec![6])]);
}

#[tokio::test]
async fn handler_settlement_overrides_the_rule() {
    let store = ScriptedStore::new();
    let limit = || {
        Limit::new("tokens", hundred())
            .cost(10)
            .settle(|_: &http::response::Parts| Settle::Cost(50))
    };
    request(&store, policy_of(limit()), |_| {}).await;
    request(&store, policy_of(limit()), Reservation::keep).await;
    request(&store, policy_of(limit()), Reservation::refund).await;
    assert_eq!(
        store.settled(),
        [("charge", vec![40]), ("refund", vec![10])]
    );
}

#[tokio::test]
async fn limits_settle_in_one_refund_and_charge() {
    let store = ScriptedStore::new();
    let limit = |name: &'static str| Limit::new(name, hundred()).cost(10).settle(by_handler());
    let policy = policy_of(limit("a"))
        .limit(limit("b"))
        .limit(limit("c"))
        .limit(limit("d"))
        .limit(Limit::new("not settled", hundred()).cost(10));
    request(&store, policy, |reservation| {
        assert!(
            reservation.settle("a", 1) && reservation.settle("b", 30) && reservation.settle("d", 2)
        );
        assert!(!reservation.settle("not settled", 1) && !reservation.settle("unknown", 1));
        assert_eq!(reservation.estimate("not settled"), None);
    })
    .await;
    assert_eq!(
        store.settled(),
        [("refund", vec![9, 8]), ("charge", vec![20])]
    );
}

#[tokio::test]
async fn settling_all_sets_each_settling_limit() {
    let store = ScriptedStore::new();
    let day = || Quota::per_day(1_000).fixed_window();
    let policy = policy_of(tokens())
        .limit(Limit::new("day", day()).cost(20).settle(by_handler()))
        .limit(per_minute("minute", 10));
    request(&store, policy, |reservation| reservation.settle_all(3)).await;
    assert_eq!(store.left("tokens", hundred()), 97);
    assert_eq!(store.left("day", day()), 997);
    assert_eq!(store.left("minute", Quota::per_minute(10)), 9);
}

#[tokio::test]
async fn refunding_all_leaves_other_limits_alone() {
    let store = ScriptedStore::new();
    let policy = policy_of(tokens()).limit(per_minute("minute", 10));
    request(&store, policy, Reservation::refund).await;
    assert_eq!(
        (
            store.left("tokens", hundred()),
            store.left("minute", Quota::per_minute(10))
        ),
        (100, 9)
    );
}

#[tokio::test]
async fn expired_window_gets_no_refund() {
    let store = ScriptedStore::new();
    let quota = Quota::per_minute(10).fixed_window();
    let (clock, limit) = (
        store.clock().clone(),
        Limit::new("window", quota).cost(4).settle(by_handler()),
    );
    let seen = store.clone();
    request(&store, policy_of(limit), move |reservation| {
        reservation.refund();
        clock.advance(secs(60));
        let Ok(_) = seen
            .memory()
            .check(&[Charge::new("window", &quota, &Key::EVERYONE).cost(5)])
            .into_inner();
    })
    .await;
    assert_eq!(store.settled(), [("refund", vec![4])]);
    assert_eq!(store.left("window", quota), 5);
}

#[tokio::test]
async fn unsettled_limits_leave_no_reservation() {
    let store = ScriptedStore::new();
    let policy = policy_of(Limit::new("plain", hundred())).limit(tokens().when(|_| false));
    request(&store, policy, |reservation| {
        assert!(reservation.is_empty() && !reservation.settle("plain", 1));
        reservation.refund();
    })
    .await;
    assert!(store.settled().is_empty());
}

#[tokio::test]
async fn inner_reservation_includes_outer_layers() {
    let (outer, inner) = (ScriptedStore::new(), ScriptedStore::new());
    let handler = service_fn(|request: Request<()>| {
        let reservation: &Reservation = request.extensions().get().unwrap();
        assert_eq!(
            (
                reservation.estimate("tokens"),
                reservation.estimate("searches")
            ),
            (Some(10), Some(2))
        );
        assert!(reservation.settle("tokens", 4) && reservation.settle("searches", 1));
        async { Ok::<_, Infallible>(Response::new(())) }
    });
    let searches = Limit::new("searches", hundred())
        .cost(2)
        .settle(by_handler());
    let service = RateLimitLayer::new(inner.clone(), policy_of(searches)).layer(handler);
    let service = RateLimitLayer::new(outer.clone(), policy_of(tokens())).layer(service);
    answer_of(&service).await;
    assert_eq!(
        (outer.settled(), inner.settled()),
        (vec![("refund", vec![6])], vec![("refund", vec![1])])
    );
}

#[tokio::test]
async fn settled_decision_refunds_nothing_again() {
    let inner = service_fn(|_: Request<()>| async { Ok::<_, Infallible>(Response::new(())) });
    for (limit, refundable) in [(tokens(), false), (Limit::new("plain", hundred()), true)] {
        let service = RateLimitLayer::new(ScriptedStore::new(), policy_of(limit))
            .attach_decision()
            .layer(inner);
        let mut response = answer_of(&service).await;
        let refund = response
            .extensions_mut()
            .get_mut::<Decision>()
            .unwrap()
            .refund();
        assert_eq!(refund.is_some(), refundable);
    }
}

#[tokio::test]
async fn slow_store_settles_in_a_task() {
    let store = slow_store();
    request(&store, policy_of(tokens()), Reservation::refund).await;
    store.until_settled(&[("refund", &[10])]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn plain_thread_may_settle_last() {
    let (store, kept) = (slow_store(), Arc::new(Mutex::new(None)));
    let keep = Arc::clone(&kept);
    request(&store, policy_of(tokens()), move |reservation| {
        *keep.lock().unwrap() = Some(reservation.clone());
    })
    .await;
    assert!(store.settled().is_empty());
    std::thread::spawn(move || assert!(kept.lock().unwrap().take().unwrap().settle("tokens", 1)))
        .join()
        .unwrap();
    store.until_settled(&[("refund", &[9])]).await;
}

#[test]
fn settling_without_runtime_does_not_panic() {
    let (store, kept) = (slow_store(), Arc::new(Mutex::new(None)));
    let keep = Arc::clone(&kept);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    runtime.block_on(request(&store, policy_of(tokens()), move |reservation| {
        *keep.lock().unwrap() = Some(reservation.clone());
    }));
    drop(runtime);
    kept.lock().unwrap().take().unwrap().refund();
}

#[tokio::test]
async fn degraded_request_settles_locally() {
    let clock = ManualClock::default();
    let local = MemoryStore::with_clock(10, clock.clone());
    let store = ScriptedStore::new();
    let inner = service_fn(|request: Request<()>| {
        let reservation = request.extensions().get::<Reservation>().cloned();
        let _ = reservation.unwrap_or_default().settle("tokens", 3);
        async { Ok::<_, Infallible>(Response::new(())) }
    });
    let service_of = |choice| {
        let policy = policy_of(tokens().on_store_failure(choice)).instances(2);
        RateLimitLayer::new(store.clone(), policy)
            .local_store(local.clone())
            .layer(inner)
    };
    store.fail(true);
    service_of(OnStoreFailure::Local)
        .oneshot(Request::new(()))
        .await
        .unwrap();
    let share = hundred().divided(2);
    let Ok(decision) = local
        .check(&[Charge::new("tokens", &share, &Key::EVERYONE).cost(0)])
        .into_inner();
    assert_eq!(decision.statuses()[0].remaining(), 47);

    // If nothing was counted, there is nothing to settle.
    service_of(OnStoreFailure::Allow)
        .oneshot(Request::new(()))
        .await
        .unwrap();
    assert!(store.settled().is_empty());
}

#[tokio::test]
async fn failed_settlement_is_reported() {
    let store = ScriptedStore::new();
    let reported = Arc::new(Mutex::new(Vec::new()));
    let (sink, failing) = (Arc::clone(&reported), store.clone());
    let inner = service_fn(move |request: Request<()>| {
        request.extensions().get::<Reservation>().unwrap().refund();
        failing.fail(true);
        async { Ok::<_, Infallible>(Response::new(())) }
    });
    let service = RateLimitLayer::new(store.clone(), policy_of(tokens()))
        .on_store_error(move |error| sink.lock().unwrap().push(error.to_string()))
        .layer(inner);
    answer_of(&service).await;
    assert_eq!(*reported.lock().unwrap(), ["secret-host:6379 is on fire"]);
    assert_eq!(store.left("tokens", hundred()), 90);
}
