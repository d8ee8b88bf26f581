//! Responses hold back the next requests of their key, within bounds.

use std::time::Duration;

use tower::{Layer, Service, ServiceExt};
use tower_quota::{Quota, ThrottleLayer};

use crate::fixture::{Order, Printer, SECOND, TICK, limiter, now, pause, poll, user};

#[tokio::test(start_paused = true)]
async fn pushback_holds_next_requests_of_key() {
    let printer = Printer::default();
    let service = ThrottleLayer::new(limiter(Quota::per_second(10)), user)
        .pushback(pause)
        .layer(printer.clone());
    let start = now();
    service
        .clone()
        .oneshot(Order::of("ann").pushes_back(SECOND * 7))
        .await
        .unwrap();
    service.clone().oneshot(Order::of("bob")).await.unwrap();
    service.clone().oneshot(Order::of("ann")).await.unwrap();
    service.oneshot(Order::of("ann")).await.unwrap();
    let at: Vec<_> = printer
        .printed()
        .iter()
        .map(|(user, at)| (*user, at.duration_since(start).as_secs()))
        .collect();
    assert_eq!(at, [("ann", 0), ("bob", 0), ("ann", 7), ("ann", 7)]);
}

#[tokio::test(start_paused = true)]
async fn longer_pushback_fails_with_its_time() {
    let limiter = limiter(Quota::per_hour(10));
    let throttle = ThrottleLayer::new(limiter.clone(), user)
        .pushback(pause)
        .max_wait(SECOND * 5);
    let printer = Printer::default();
    let service = throttle.layer(printer.clone());
    service
        .clone()
        .oneshot(Order::of("ann").pushes_back(SECOND * 7))
        .await
        .unwrap();
    let error = service.clone().oneshot(Order::of("ann")).await.unwrap_err();
    let refusal = error.throttled().unwrap();
    assert_eq!(refusal.retry_after(), Some(SECOND * 7));
    assert!(
        refusal.decision().is_none(),
        "the remote refused, not the limiter"
    );
    assert_eq!(
        refusal.to_string(),
        "the remote asked for a pause: try again in 7s"
    );
    assert_eq!(
        (printer.calls(), limiter.check_now("ann").remaining()),
        (1, 8)
    );
    // After exactly that time the request is accepted.
    tokio::time::advance(SECOND * 7).await;
    service.oneshot(Order::of("ann")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn hostile_pushback_is_bounded() {
    for (longest, throttle) in [
        (
            SECOND * 300,
            ThrottleLayer::global(limiter(Quota::per_second(1))),
        ),
        (
            SECOND * 9,
            ThrottleLayer::global(limiter(Quota::per_second(1))).max_pushback(SECOND * 9),
        ),
        (
            SECOND * 366 * 86_400,
            ThrottleLayer::global(limiter(Quota::per_second(1))).max_pushback(Duration::MAX),
        ),
    ] {
        let service = throttle
            .pushback(pause)
            .max_wait(Duration::ZERO)
            .layer(Printer::default());
        service
            .clone()
            .oneshot(Order::of("ann").pushes_back(Duration::MAX))
            .await
            .unwrap();
        let error = service.oneshot(Order::of("ann")).await.unwrap_err();
        assert_eq!(error.throttled().unwrap().retry_after(), Some(longest));
    }
}

#[tokio::test(start_paused = true)]
async fn shorter_pushback_changes_nothing() {
    let service = ThrottleLayer::global(limiter(Quota::per_second(10)))
        .pushback(pause)
        .layer(Printer::default());
    let mut calls: Vec<_> = [7, 2, 0]
        .map(|seconds| {
            Box::pin(
                service
                    .clone()
                    .call(Order::of("ann").pushes_back(SECOND * seconds)),
            )
        })
        .into();
    for call in &mut calls {
        call.await.unwrap();
    }
    let start = now();
    service.oneshot(Order::of("ann")).await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 7);
}

#[tokio::test(start_paused = true)]
async fn waiting_request_obeys_later_pushback() {
    let printer = Printer::default();
    let throttle = ThrottleLayer::new(limiter(Quota::per_second(1).burst(1)), user).pushback(pause);
    let mut service = throttle.layer(printer.clone());
    let start = now();
    let first = service.call(Order::of("ann").pushes_back(SECOND * 7));
    let mut second = Box::pin(service.call(Order::of("ann")));
    assert!(poll(second.as_mut()).is_pending());
    first.await.unwrap();
    second.await.unwrap();
    let waited = start.elapsed();
    assert!(
        (SECOND * 7..SECOND * 7 + TICK).contains(&waited),
        "{waited:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn turn_due_during_pushback_is_spent() {
    let limiter = limiter(Quota::per_second(1).burst(1));
    let throttle = ThrottleLayer::new(limiter.clone(), user)
        .pushback(pause)
        .max_wait(SECOND * 5);
    let mut service = throttle.layer(Printer::default());
    let first = service.call(Order::of("ann").pushes_back(SECOND * 7));
    let second = service.call(Order::of("ann"));
    first.await.unwrap();
    let error = second.await.unwrap_err();
    let retry = error.throttled().unwrap().retry_after().unwrap();
    assert!(
        (SECOND * 6 - TICK..=SECOND * 6).contains(&retry),
        "{retry:?}"
    );
    // A refund would let two requests start together after the pushback.
    assert!(!limiter.check_now("ann").is_allowed());
    tokio::time::advance(SECOND).await;
    assert!(limiter.check_now("ann").is_allowed());
}

#[tokio::test(start_paused = true)]
async fn pushed_back_requests_keep_their_rate() {
    let printer = Printer::default();
    let throttle = ThrottleLayer::new(limiter(Quota::per_second(1).burst(1)), user).pushback(pause);
    let mut service = throttle.layer(printer.clone());
    let first = service.call(Order::of("ann").pushes_back(SECOND * 7));
    let others: Vec<_> = (0..5)
        .map(|_| tokio::spawn(service.call(Order::of("ann"))))
        .collect();
    first.await.unwrap();
    for other in others {
        other.await.unwrap().unwrap();
    }
    let at: Vec<_> = printer.printed().iter().map(|(_, at)| *at).collect();
    assert_eq!(at.len(), 6);
    assert!(at[1].duration_since(at[0]) >= SECOND * 7);
    for pair in at.windows(2) {
        assert!(pair[1].duration_since(pair[0]) >= SECOND, "{at:?}");
    }
}
