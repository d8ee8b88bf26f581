//! Requests wait for their turn, or fail with the decision.

use std::pin::pin;
use std::time::Duration;

use tokio::time::timeout;
use tower::{Layer, Service, ServiceExt};
use tower_quota::{Decision, MemoryStore, Outcome, Quota, ThrottleLayer, throttle::ThrottleError};
use tower_quota_testkit::ManualClock;

use crate::fixture::{Order, Printer, SECOND, TICK, limiter, now, poll, user};

fn left(limiter: &tower_quota::Limiter<MemoryStore>, key: &str) -> u64 {
    let Ok(decision) = limiter.peek(key).into_inner();
    decision.statuses()[0].remaining()
}

fn refusal<E>(error: &ThrottleError<E>) -> &Decision {
    error.throttled().unwrap().decision().unwrap()
}

#[tokio::test(start_paused = true)]
async fn turns_come_in_order_of_calls() {
    let printer = Printer::default();
    let throttle = ThrottleLayer::global(limiter(Quota::per_second(10).burst(1)));
    let mut service = throttle.layer(printer.clone());
    let start = now();
    let users = ["ann", "bob", "cat", "dan"];
    let calls = users.map(|name| service.call(Order::of(name)));
    // The calls are polled in reverse order.
    for call in calls
        .into_iter()
        .rev()
        .map(tokio::spawn)
        .collect::<Vec<_>>()
    {
        call.await.unwrap().unwrap();
    }
    for (turn, (name, at)) in (0..).zip(printer.printed()) {
        let due = Duration::from_millis(100) * turn;
        assert!(
            (due..due + TICK).contains(&at.duration_since(start)),
            "{name}"
        );
        assert_eq!(name, users[turn as usize]);
    }
    assert_eq!(printer.calls(), 4);
}

#[tokio::test(start_paused = true)]
async fn longer_wait_fails_with_the_decision() {
    let printer = Printer::default();
    let throttle =
        ThrottleLayer::new(limiter(Quota::per_second(1).burst(1)), user).max_wait(SECOND);
    let mut service = throttle.layer(printer.clone());
    let [one, two, three] = std::array::from_fn(|_| service.call(Order::of("ann")));
    let start = now();
    let error = three.await.unwrap_err();
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert_eq!(error.throttled().unwrap().retry_after(), Some(SECOND));
    assert_eq!(refusal(&error).outcome(), Outcome::Refuse(SECOND));
    assert_eq!(refusal(&error).tightest().unwrap().name.as_str(), "limit");
    one.await.unwrap();
    two.await.unwrap();
    assert_eq!(printer.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn zero_wait_fails_at_once() {
    let throttle =
        ThrottleLayer::global(limiter(Quota::per_second(1).burst(1))).max_wait(Duration::ZERO);
    let service = throttle.layer(Printer::default());
    service.clone().oneshot(Order::of("ann")).await.unwrap();
    let error = service.oneshot(Order::of("bob")).await.unwrap_err();
    assert_eq!(error.throttled().unwrap().retry_after(), Some(SECOND));
}

#[tokio::test(start_paused = true)]
async fn keys_are_throttled_separately() {
    let printer = Printer::default();
    let throttle =
        ThrottleLayer::new(limiter(Quota::per_second(1).burst(1)), user).max_wait(Duration::ZERO);
    let service = throttle.layer(printer.clone());
    for name in ["ann", "bob"] {
        service.clone().oneshot(Order::of(name)).await.unwrap();
        service.clone().oneshot(Order::of(name)).await.unwrap_err();
    }
    assert_eq!(printer.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn cost_comes_from_the_request() {
    let limiter = limiter(Quota::per_minute(10));
    let throttle = ThrottleLayer::new(limiter.clone(), user).cost_with(|order: &Order| order.pages);
    let service = throttle.max_wait(Duration::ZERO).layer(Printer::default());
    service
        .clone()
        .oneshot(Order::of("ann").pages(7))
        .await
        .unwrap();
    assert_eq!(left(&limiter, "ann"), 3);
    let error = service
        .clone()
        .oneshot(Order::of("ann").pages(4))
        .await
        .unwrap_err();
    assert_eq!(error.throttled().unwrap().retry_after(), Some(SECOND * 6));
    service
        .clone()
        .oneshot(Order::of("ann").pages(3))
        .await
        .unwrap();
    let never = service
        .oneshot(Order::of("ann").pages(11))
        .await
        .unwrap_err();
    assert_eq!(
        (
            refusal(&never).outcome(),
            never.throttled().unwrap().retry_after()
        ),
        (Outcome::Never, None)
    );
}

#[tokio::test(start_paused = true)]
async fn dropped_wait_refunds_its_turn() {
    let printer = Printer::default();
    let throttle = ThrottleLayer::new(limiter(Quota::per_second(1).burst(1)), user);
    let service = throttle.layer(printer.clone());
    service.clone().oneshot(Order::of("ann")).await.unwrap();
    for _ in 0..10 {
        assert!(
            timeout(
                Duration::from_millis(10),
                service.clone().oneshot(Order::of("ann"))
            )
            .await
            .is_err()
        );
    }
    let start = now();
    service.oneshot(Order::of("ann")).await.unwrap();
    assert!(start.elapsed() <= SECOND, "{:?}", start.elapsed());
    assert_eq!(printer.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn unpolled_request_refunds_its_turn() {
    let limiter = limiter(Quota::per_second(1).burst(1));
    let mut service = ThrottleLayer::new(limiter.clone(), user).layer(Printer::default());
    service.call(Order::of("ann")).await.unwrap();
    drop(service.call(Order::of("ann")));
    tokio::time::advance(SECOND).await;
    assert_eq!(left(&limiter, "ann"), 1);
}

#[tokio::test(start_paused = true)]
async fn full_waiting_room_fails_and_charges_nothing() {
    let printer = Printer::default();
    let throttle = ThrottleLayer::new(limiter(Quota::per_second(1).burst(1)), user).max_waiting(2);
    let service = throttle.layer(printer.clone());
    let call = |name| Box::pin(service.clone().oneshot(Order::of(name)));
    call("ann").await.unwrap();
    let (mut second, mut third) = (call("ann"), call("ann"));
    assert!(poll(second.as_mut()).is_pending());
    assert!(poll(third.as_mut()).is_pending());
    for _ in 0..3 {
        let error = call("ann").await.unwrap_err();
        assert_eq!(error.throttled().unwrap().retry_after(), Some(SECOND * 3));
    }
    // A request that need not wait takes no place.
    call("bob").await.unwrap();
    second.await.unwrap();
    // A place is free again.
    assert!(poll(call("ann").as_mut()).is_pending());
    third.await.unwrap();
    assert_eq!(printer.calls(), 4);
}

#[test]
fn immediate_turn_needs_no_runtime() {
    let store = MemoryStore::with_clock(10, ManualClock::default());
    let limiter = tower_quota::Limiter::new(store, "limit", Quota::per_second(1));
    let mut service = ThrottleLayer::new(limiter, user).layer(Printer::default());
    let call = pin!(service.call(Order::of("ann")));
    assert!(poll(call).is_ready());
}
