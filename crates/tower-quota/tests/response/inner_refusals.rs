//! Fields that an outer layer adds to a refusal by an inner one.

use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use tower::{Layer, ServiceBuilder};
use tower_quota::{
    HeaderStyle, Limit, MemoryStore, OnStoreFailure, Quota, RateLimitLayer, Reset, ResponseBody,
};

use crate::shared::{
    Inner, answer_of, assert_field, failing_store, per_hour, policy_of, secs, stopped_store,
};

fn layer(name: &'static str, quota: Quota) -> RateLimitLayer<MemoryStore> {
    let store = stopped_store();
    RateLimitLayer::new(store, policy_of(Limit::new(name, quota)))
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
    answer_of(&service).await;
    answer_of(&service).await
}

#[tokio::test]
async fn outer_window_never_contradicts_inner_retry_after() {
    let response = inner_refusal(&[HeaderStyle::Draft11]).await;
    assert_eq!(response.status(), 429);
    assert_field(&response, "retry-after", "1");
    assert_field(&response, "ratelimit", r#""second";r=0;t=1"#);
    assert_field(&response, "ratelimit-policy", r#""second";q=1;w=1"#);
}

#[tokio::test]
async fn outer_reset_never_contradicts_inner_retry_after() {
    let response = inner_refusal(&[HeaderStyle::XRateLimit(Reset::Delta)]).await;
    assert_field(&response, "x-ratelimit-reset", "1");
    let response = inner_refusal(&[HeaderStyle::Draft7]).await;
    assert_field(&response, "ratelimit", "limit=1, remaining=0, reset=1");
}

#[tokio::test]
async fn degraded_outer_layer_still_marks_inner_refusal() {
    let policy = policy_of(per_hour("outer", 2).on_store_failure(OnStoreFailure::Allow));
    let outer = RateLimitLayer::new(failing_store(), policy);
    let service = outer.layer(layer("inner", Quota::new(1, secs(9))).layer(Inner::default()));
    answer_of(&service).await;
    let response = answer_of(&service).await;
    assert_field(&response, "retry-after", "9");
    assert_field(&response, "x-ratelimit-remaining", "0");
    assert_field(&response, "x-ratelimit-policy", "degraded");
}
