//! Concurrency limits count the calls that the remote has not answered.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tower::{Layer, Service, ServiceExt, service_fn};
use tower_quota::throttle::Retries;
use tower_quota::{Limiter, MemoryStore, Quota, ThrottleLayer};
use tower_quota_testkit::{ScriptedAnswer, ScriptedStore};

use crate::fixture::{Order, Printer, SECOND, limiter, memory, pass, pause, poll, user};

const THREE: Quota = Quota::concurrent(3);

fn left(limiter: &Limiter<MemoryStore>) -> u64 {
    let Ok(decision) = limiter.peek("ann").into_inner();
    decision.statuses()[0].remaining()
}

/// Returns a service that answers after a second.
fn slow() -> impl Service<Order, Response = Order, Error = Infallible, Future: Send> + Clone {
    service_fn(async |order: Order| {
        pass(SECOND).await;
        Ok(order)
    })
}

#[tokio::test(start_paused = true)]
async fn answered_call_gives_unit_back() {
    let limiter = limiter(THREE);
    let service = ThrottleLayer::new(limiter.clone(), user).layer(Printer::default());
    for _ in 0..9 {
        service.clone().oneshot(Order::of("ann")).await.unwrap();
        assert_eq!(left(&limiter), 3);
    }
}

#[tokio::test(start_paused = true)]
async fn calls_in_progress_hold_units() {
    let limiter = limiter(THREE);
    let throttle = ThrottleLayer::new(limiter.clone(), user).cost_with(|order: &Order| order.pages);
    let mut service = throttle.layer(slow());
    let one = service.call(Order::of("ann"));
    let two = service.call(Order::of("ann").pages(2));
    assert_eq!(left(&limiter), 0);
    let refused = service.call(Order::of("ann")).await.unwrap_err();
    assert!(refused.throttled().unwrap().decision().is_some());
    one.await.unwrap();
    assert_eq!(left(&limiter), 1);
    two.await.unwrap();
    assert_eq!(left(&limiter), 3);
}

#[tokio::test(start_paused = true)]
async fn failed_and_dropped_calls_give_unit_back() {
    let limiter = limiter(THREE);
    let throttle = || ThrottleLayer::new(limiter.clone(), user);
    let failing = throttle().layer(service_fn(async |_: Order| Err::<Order, _>("down")));
    failing.oneshot(Order::of("ann")).await.unwrap_err();
    assert_eq!(left(&limiter), 3);
    let never = service_fn(|_: Order| pending::<Result<Order, Infallible>>());
    let mut call = Box::pin(throttle().layer(never).oneshot(Order::of("ann")));
    assert!(poll(call.as_mut()).is_pending());
    assert_eq!(left(&limiter), 2);
    drop(call);
    assert_eq!(left(&limiter), 3);
}

#[tokio::test(start_paused = true)]
async fn failed_release_is_reported_and_repeated() {
    let store = ScriptedStore::new();
    let limiter = Limiter::new(store.clone(), "calls", THREE);
    let reported = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&reported);
    let throttle = ThrottleLayer::new(limiter, user).on_store_error(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
    });
    store.push(ScriptedAnswer::memory());
    store.push(ScriptedAnswer::error("down"));
    let service = throttle.layer(Printer::default());
    service.oneshot(Order::of("ann")).await.unwrap();
    tokio::task::yield_now().await;
    assert_eq!(reported.load(Ordering::SeqCst), 1);
    tokio::time::advance(SECOND).await;
    tokio::task::yield_now().await;
    let calls = store.operations();
    assert_eq!(calls.len(), 3, "{calls:?}");
    assert_eq!(calls[1], calls[2]);
}

#[tokio::test(start_paused = true)]
async fn long_call_keeps_its_unit() {
    let limiter = limiter(THREE.ttl(SECOND * 60));
    let slow = service_fn(async |order: Order| {
        pass(SECOND * 3_600).await;
        Ok::<_, Infallible>(order)
    });
    let mut service = ThrottleLayer::new(limiter.clone(), user).layer(slow);
    let call = tokio::spawn(service.call(Order::of("ann")));
    for _ in 0..20 {
        pass(SECOND * 150).await;
        assert_eq!(left(&limiter), 2);
    }
    call.await.unwrap().unwrap();
    assert_eq!(left(&limiter), 3);
}

#[tokio::test(start_paused = true)]
async fn pushed_back_call_holds_nothing() {
    let store = memory();
    let limiter = Limiter::new(store, "calls", Quota::per_second(1).burst(1)).limit("units", THREE);
    let throttle = ThrottleLayer::new(limiter.clone(), user).pushback(pause);
    let mut service = throttle.layer(Printer::default());
    let units = || {
        let Ok(decision) = limiter.peek("ann").into_inner();
        decision.status("units").unwrap().remaining()
    };
    let first = service.call(Order::of("ann").pushes_back(SECOND * 7));
    let second = tokio::spawn(service.call(Order::of("ann")));
    first.await.unwrap();
    // The turn of the second call falls due during the pause.
    pass(SECOND * 3).await;
    assert_eq!(units(), 3);
    second.await.unwrap().unwrap();
    assert_eq!(units(), 3);
}

#[tokio::test(start_paused = true)]
async fn call_that_waits_for_retry_holds_nothing() {
    let limiter = limiter(THREE);
    let retries = Retries::new(|order: &Order| Some(*order), pause).backoff(SECOND, SECOND);
    let throttle = ThrottleLayer::new(limiter.clone(), user).retries(retries);
    let mut service = throttle.layer(Printer::default());
    let call = tokio::spawn(service.call(Order::of("ann").pushes_back(SECOND * 7)));
    pass(SECOND * 3).await;
    assert_eq!(left(&limiter), 3);
    call.await.unwrap().unwrap();
    assert_eq!(left(&limiter), 3);
}
