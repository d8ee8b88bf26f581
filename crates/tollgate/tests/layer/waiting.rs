//! Requests that wait their turn. Time is tokio's paused clock and the store's manual one.

use std::pin::pin;
use std::time::Duration;

use http::{Request, StatusCode};
use tokio::time::timeout;
use tollgate::{Limit, Policy, Quota};
use tower::ServiceExt;

use crate::fixture::{Limited, field};

/// tokio's timer rounds to milliseconds.
const TICK: Duration = Duration::from_millis(2);

fn queue(places: u64) -> Limit {
    Limit::new("queue", Quota::per_second(2).burst(places).leaky_bucket())
}

#[tokio::test(start_paused = true)]
async fn a_leaky_bucket_gives_each_request_its_turn() {
    let limited = Limited::new(Policy::new().limit(queue(3)));
    let mut first = pin!(limited.get());
    assert_eq!(timeout(TICK, &mut first).await.expect("the first need not wait").status(), StatusCode::OK);

    let mut second = pin!(limited.get());
    let mut third = pin!(limited.get());
    assert!(timeout(Duration::from_millis(500) - TICK, &mut second).await.is_err());
    assert_eq!(limited.inner.calls(), 1, "the inner service is not called before the turn");
    let response = timeout(TICK * 2, &mut second).await.expect("its turn has come");
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(field(&response, "ratelimit").as_deref(), Some(r#""queue";r=1;t=1"#));
    assert_eq!(limited.inner.last_seen().unwrap().wait(), Duration::from_millis(500));

    // The store's clock stands still, so the third's turn is a second after it asked, which is now.
    assert!(timeout(Duration::from_secs(1) - TICK, &mut third).await.is_err());
    assert_eq!(timeout(TICK * 2, &mut third).await.expect("its turn has come").status(), StatusCode::OK);

    // Three places are taken.
    let full = limited.get().await;
    assert_eq!(full.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(field(&full, "retry-after").as_deref(), Some("1"));
    assert_eq!(limited.inner.calls(), 3);
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_longer_than_told() {
    let limited = Limited::new(Policy::new().limit(queue(100).max_wait(Duration::from_millis(600))));
    assert_eq!(limited.get().await.status(), StatusCode::OK);
    assert_eq!(limited.get().await.status(), StatusCode::OK);
    let third = limited.get().await;
    assert_eq!(third.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(field(&third, "ratelimit").as_deref(), Some(r#""queue";r=98;t=1"#));
}

#[tokio::test(start_paused = true)]
async fn a_leaky_bucket_waits_half_a_minute_at_most_unless_told_otherwise() {
    let limited = Limited::new(Policy::new().limit(queue(1_000)));
    let requests: Vec<_> = (0..100).map(|_| tokio::spawn(limited.service.clone().oneshot(Request::new(())))).collect();
    let mut admitted = 0;
    for request in requests {
        admitted += u32::from(request.await.unwrap().unwrap().status() == StatusCode::OK);
    }
    // At once, and each half second up to 30.
    assert_eq!(admitted, 61);
}

#[tokio::test(start_paused = true)]
async fn other_buckets_wait_when_told_to() {
    let bucket = Limit::new("bucket", Quota::per_second(1).burst(1)).max_wait(Duration::from_secs(1));
    let limited = Limited::new(Policy::new().limit(bucket));
    assert_eq!(limited.get().await.status(), StatusCode::OK);
    let mut second = pin!(limited.get());
    assert!(timeout(Duration::from_secs(1) - TICK, &mut second).await.is_err());
    assert_eq!(timeout(TICK * 2, &mut second).await.unwrap().status(), StatusCode::OK);
    assert_eq!(limited.get().await.status(), StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test(start_paused = true)]
async fn a_request_dropped_while_it_waits_never_reaches_the_service() {
    let limited = Limited::new(Policy::new().limit(queue(10)));
    limited.get().await;
    {
        let mut waiting = pin!(limited.get());
        assert!(timeout(Duration::from_millis(100), &mut waiting).await.is_err());
    }
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!(limited.inner.calls(), 1);

    // Its turn is spent, and the next comes after it.
    limited.get().await;
    assert_eq!(limited.inner.last_seen().unwrap().wait(), Duration::from_secs(1));
}
