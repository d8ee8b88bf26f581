//! A store that cannot be asked is a response, never an error.

use http::{Request, Response, StatusCode};
use tollgate::{BoxStore, Limit, OnStoreFailure, Policy, Quota, RateLimit, RateLimitLayer, Reason, Refused};
use tower::{Layer, ServiceExt};

use crate::fixture::{BrokenStore, Inner, field, text};

fn policy(choice: OnStoreFailure) -> Policy {
    Policy::new().limit(Limit::new("minute", Quota::per_minute(1))).on_store_failure(choice)
}

fn service(choice: OnStoreFailure) -> RateLimit<Inner, BrokenStore> {
    RateLimitLayer::new(BrokenStore, policy(choice)).layer(Inner::default())
}

#[tokio::test]
async fn allowing_goes_ahead_and_says_that_nothing_was_counted() {
    assert_eq!(OnStoreFailure::default(), OnStoreFailure::Allow);
    for _ in 0..3 {
        let service = service(OnStoreFailure::Allow);
        let inner = service.get_ref().clone();
        let response = service.oneshot(Request::new(())).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(field(&response, "x-ratelimit-policy").as_deref(), Some("degraded"));
        assert_eq!(field(&response, "x-ratelimit-remaining").as_deref(), Some("-1"));
        assert_eq!(response.headers().len(), 2);
        assert_eq!(inner.last_seen(), None);
    }
}

#[tokio::test]
async fn refusing_is_a_503_that_says_nothing_of_the_store() {
    let service = service(OnStoreFailure::Refuse);
    let inner = service.get_ref().clone();
    let response = service.oneshot(Request::new(())).await.unwrap();
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(field(&response, "retry-after").as_deref(), Some("1"));
    assert_eq!(field(&response, "x-ratelimit-policy").as_deref(), Some("degraded"));
    assert_eq!(field(&response, "ratelimit"), None);
    assert_eq!(field(&response, "cache-control").as_deref(), Some("no-store"));
    let body = text(response).await;
    assert!(!body.contains("secret-host"), "{body}");
    let problem: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(problem["type"], "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity");
    assert_eq!(problem["status"], 503);
    assert_eq!(problem["detail"], "Rate limits cannot be checked at the moment: retry in 1 second.");
    assert_eq!(inner.calls(), 0);
}

#[tokio::test]
async fn a_custom_refusal_sees_the_error() {
    let layer = RateLimitLayer::new(BoxStore::new(BrokenStore), policy(OnStoreFailure::Refuse)).refusal(
        |refused: &Refused<'_>| match refused.reason() {
            Reason::StoreFailure(error) => Response::new(error.to_string()),
            _ => Response::new(String::new()),
        },
    );
    let response = layer.layer(Inner::default()).oneshot(Request::new(())).await.unwrap();
    assert_eq!(field(&response, "retry-after").as_deref(), Some("1"));
    assert_eq!(text(response).await, "secret-host:6379 is on fire");
}
