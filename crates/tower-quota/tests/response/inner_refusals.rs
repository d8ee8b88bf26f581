//! Fields that an outer layer adds to a refusal by an inner one.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use tower::{Layer, ServiceBuilder, ServiceExt};
use tower_quota::{
    HeaderStyle, Limit, MemoryStore, OnStoreFailure, Policy, Quota, RateLimitLayer, Reset,
    ResponseBody,
};
use tower_quota_testkit::ManualClock;

use crate::shared::{Inner, failing_store, field};

fn layer(name: &'static str, quota: Quota) -> RateLimitLayer<MemoryStore> {
    let store = MemoryStore::with_clock(10, ManualClock::default());
    RateLimitLayer::new(store, Policy::new().limit(Limit::new(name, quota)))
}

/// Returns the refusal of an inner layer; the outer layer has spent its last unit.
async fn inner_refusal(
    styles: &[HeaderStyle],
) -> Response<ResponseBody<ResponseBody<Full<Bytes>>>> {
    let hour = layer("hour", Quota::per_hour(2)).headers(styles.to_vec());
    let second = layer("second", Quota::per_second(1)).headers(styles.to_vec());
    let service = ServiceBuilder::new()
        .layer(hour)
        .layer(second)
        .service(Inner::default());
    service.clone().oneshot(Request::new(())).await.unwrap();
    service.oneshot(Request::new(())).await.unwrap()
}

#[tokio::test]
async fn outer_window_never_contradicts_inner_retry_after() {
    let response = inner_refusal(&[HeaderStyle::Draft11]).await;
    assert_eq!(response.status(), 429);
    assert_eq!(field(&response, "retry-after").as_deref(), Some("1"));
    assert_eq!(
        field(&response, "ratelimit").as_deref(),
        Some(r#""second";r=0;t=1"#)
    );
    assert_eq!(
        field(&response, "ratelimit-policy").as_deref(),
        Some(r#""second";q=1;w=1"#)
    );
}

#[tokio::test]
async fn outer_reset_never_contradicts_inner_retry_after() {
    let response = inner_refusal(&[HeaderStyle::XRateLimit(Reset::Delta)]).await;
    assert_eq!(field(&response, "x-ratelimit-reset").as_deref(), Some("1"));
    let response = inner_refusal(&[HeaderStyle::Draft7]).await;
    assert_eq!(
        field(&response, "ratelimit").as_deref(),
        Some("limit=1, remaining=0, reset=1")
    );
}

#[tokio::test]
async fn degraded_outer_layer_still_marks_inner_refusal() {
    let policy = Policy::new()
        .limit(Limit::new("outer", Quota::per_hour(2)).on_store_failure(OnStoreFailure::Allow));
    let outer = RateLimitLayer::new(failing_store(), policy);
    let service =
        outer.layer(layer("inner", Quota::new(1, Duration::from_secs(9))).layer(Inner::default()));
    service.clone().oneshot(Request::new(())).await.unwrap();
    let response = service.oneshot(Request::new(())).await.unwrap();
    assert_eq!(field(&response, "retry-after").as_deref(), Some("9"));
    assert_eq!(
        field(&response, "x-ratelimit-remaining").as_deref(),
        Some("0")
    );
    assert_eq!(
        field(&response, "x-ratelimit-policy").as_deref(),
        Some("degraded")
    );
}
