//! Lists of requests that are not counted: skipped, allowed, blocked.

use http::{Request, Response, Version};
use serde_json::{Value, json};
use tower::Layer;
use tower_quota::{
    Decision, Limit, MissingKey, Policy, Protocol, RateLimitLayer, Reason, key, when,
};

use crate::fixture::{
    Answer, Inner, LastRequest, Limited, StoreControl, failing_store, slow_store, text,
};
use crate::shared::{answer_to, assert_field, per_minute};

fn once() -> Limit {
    per_minute("once", 1)
}

fn by(name: &str) -> http::request::Builder {
    Request::get("/").header("user", name)
}

fn user(names: &'static [&'static str]) -> Box<dyn when::Condition> {
    when::key_in(key::header("user"), names)
}

/// Asserts that the response has no rate limit fields.
fn assert_no_rate_fields(response: &Answer) {
    for name in response.headers().keys() {
        assert!(
            !name.as_str().contains("ratelimit") && name != "retry-after",
            "{name}"
        );
    }
    assert!(response.extensions().get::<Decision>().is_none());
}

#[tokio::test]
async fn skipped_request_is_not_limited() {
    let limited = Limited::new(
        Policy::new()
            .skip(when::path("/healthz"))
            .skip(user(&["probe"]))
            .limit(once()),
    );
    for _ in 0..3 {
        for request in [Request::get("/healthz"), by("probe")] {
            let response = limited.send(request).await;
            assert_eq!(response.status(), 200);
            assert_no_rate_fields(&response);
            assert_eq!(limited.inner.last_seen(), None);
        }
    }
    assert_eq!(limited.get().await.status(), 200, "nothing was spent");
    assert_eq!(limited.get().await.status(), 429);
}

#[tokio::test]
async fn lists_do_not_call_the_store() {
    let store = slow_store();
    let policy = Policy::new()
        .skip(user(&["sue"]))
        .allow(user(&["ann"]))
        .block(user(&["bob"]))
        .limit(once());
    let service = RateLimitLayer::new(store.clone(), policy).layer(Inner::default());
    for (name, status) in [("sue", 200), ("ann", 200), ("bob", 403)] {
        let response = answer_to(&service, by(name).body(()).unwrap()).await;
        assert_eq!(response.status(), status, "{name}");
    }
    assert!(store.charge_counts().is_empty());
    answer_to(&service, by("eve").body(()).unwrap()).await;
    assert_eq!(store.charge_counts(), [1]);
}

#[tokio::test]
async fn allow_precedes_block_and_block_skip() {
    let policy = Policy::new()
        .block(user(&["ann", "bob", "eve"]))
        .skip(user(&["bob", "sue"]))
        .allow(user(&["ann"]))
        .allow(user(&["joe"]))
        .block(user(&["mallory"]))
        .limit(
            once()
                .by(key::header("none"))
                .when_missing(MissingKey::Refuse),
        );
    let limited = Limited::new(policy);
    for (name, status) in [
        ("ann", 200),
        ("joe", 200),
        ("sue", 200),
        ("bob", 403),
        ("eve", 403),
        ("mallory", 403),
        ("other", 400),
    ] {
        assert_eq!(limited.send(by(name)).await.status(), status, "{name}");
    }
    assert_eq!(limited.inner.calls(), 3);
}

#[tokio::test]
async fn blocked_requests_are_forbidden() {
    let policy = Policy::new().block(when::path("/secret")).limit(once());
    let limited = Limited::new(policy);
    let response = limited.send(Request::get("/secret")).await;
    assert_eq!(response.status(), 403);
    assert_no_rate_fields(&response);
    assert_field(&response, "content-type", "application/problem+json");
    assert_field(&response, "cache-control", "no-store");
    let problem: Value = serde_json::from_str(&text(response).await).unwrap();
    assert_eq!(
        problem,
        json!({
            "type": "about:blank",
            "title": "Forbidden",
            "status": 403,
            "detail": "Requests like this one are not served.",
        })
    );
    let head = limited.send(Request::head("/secret")).await;
    assert_eq!(head.status(), 403);
    assert_eq!(text(head).await, "");
    assert_eq!(limited.inner.calls(), 0);
}

#[tokio::test]
async fn custom_refusal_answers_blocked_requests() {
    let limited = Limited::with(Policy::new().block(|_| true), |layer| {
        layer.on_refused(|refused| {
            assert!(matches!(refused.reason(), Reason::Blocked));
            assert_eq!(
                (
                    refused.decision(),
                    refused.retry_after(),
                    refused.limits().count()
                ),
                (None, None, 0)
            );
            Response::builder()
                .status(404)
                .body("nothing here")
                .unwrap()
        })
    });
    let response = limited.get().await;
    assert_eq!(response.status(), 404);
    assert_no_rate_fields(&response);
    assert_eq!(text(response).await, "nothing here");
}

#[tokio::test]
async fn blocked_calls_are_permission_denied() {
    let policy = Policy::new().block(when::grpc_service("echo.Echo"));
    let limited = Limited::with(policy, |layer| layer.protocol(Protocol::Both));
    let call = Request::post("/echo.Echo/Say")
        .version(Version::HTTP_2)
        .header("content-type", "application/grpc");
    let response = limited.send(call).await;
    assert_eq!(response.status(), 200);
    assert_field(&response, "grpc-status", "7");
    assert_field(
        &response,
        "grpc-message",
        "Requests like this one are not served.",
    );
    assert_field(&response, "grpc-retry-pushback-ms", "-1");
    assert_no_rate_fields(&response);
}

#[tokio::test]
async fn lists_apply_while_store_is_unavailable() {
    let policy = Policy::new()
        .allow(user(&["ann"]))
        .block(user(&["bob"]))
        .limit(once())
        .on_store_failure(tower_quota::OnStoreFailure::Refuse);
    let service = RateLimitLayer::new(failing_store(), policy).layer(Inner::default());
    for (name, status) in [("ann", 200), ("bob", 403), ("eve", 503)] {
        let response = answer_to(&service, by(name).body(()).unwrap()).await;
        assert_eq!(response.status(), status, "{name}");
    }
}
