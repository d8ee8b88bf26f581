//! Limits that apply to some requests.

use http::{Method, Request};
use tower_quota::when;

use crate::fixture::{Limited, field};
use crate::shared::{per_minute, policy_of};

/// Returns the names of the limits that count a request.
async fn counting(limited: &Limited, request: http::request::Builder) -> String {
    field(&limited.send(request).await, "ratelimit-policy").unwrap_or_default()
}

#[tokio::test]
async fn limit_counts_where_all_its_conditions_hold() {
    let limit = per_minute("l", 9)
        .when(when::method([Method::POST]))
        .when(|head| head.uri().path().starts_with("/api"))
        .unless(when::path("/api/free"))
        .unless(|head| head.headers().contains_key("x-internal"));
    let limited = Limited::new(policy_of(limit));
    assert_ne!(counting(&limited, Request::post("/api/x")).await, "");
    for request in [
        Request::get("/api/x"),
        Request::post("/other"),
        Request::post("/api/free"),
        Request::post("/api/x").header("x-internal", "1"),
    ] {
        assert_eq!(counting(&limited, request).await, "");
    }
}
