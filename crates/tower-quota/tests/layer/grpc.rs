//! Refusals of gRPC requests.

use http::{Method, Request, Response, StatusCode, Version};
use http_body::Body as _;
use tower::{Layer, ServiceExt};
use tower_quota::{Limit, MissingKey, OnStoreFailure, Policy, Quota, RateLimitLayer, Refused, key};

use crate::fixture::{Answer, Inner, Limited, failing_store, field};

fn call(content_type: &str) -> http::request::Builder {
    Request::post("/echo.Echo/Say").version(Version::HTTP_2).header("content-type", content_type)
}

/// The answer to a second call where one is admitted.
async fn refused(call: impl Fn() -> http::request::Builder) -> Answer {
    let limited = Limited::new(once());
    limited.send(call()).await;
    limited.send(call()).await
}

fn once() -> Policy {
    Policy::new().limit(Limit::new("100%", Quota::per_minute(40).burst(1)))
}

#[tokio::test]
async fn a_refusal_is_trailers_only() {
    let limited = Limited::with(once(), |layer| {
        layer.refusal(|_: &Refused<'_>| -> Response<&'static str> { panic!("gRPC is answered in its own way") })
    });
    limited.send(call("application/grpc")).await;
    let response = limited.send(call("application/grpc+proto")).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(field(&response, "content-type").as_deref(), Some("application/grpc+proto"));
    assert_eq!(field(&response, "grpc-status").as_deref(), Some("8"));
    assert_eq!(field(&response, "grpc-message").as_deref(), Some(r#"Over the limit "100%25": retry in 2 seconds."#));
    assert_eq!(field(&response, "grpc-retry-pushback-ms").as_deref(), Some("1500"));
    assert_eq!(field(&response, "retry-after").as_deref(), Some("2"));
    assert_eq!(field(&response, "cache-control").as_deref(), Some("no-store"));
    assert_eq!(field(&response, "ratelimit").as_deref(), Some(r#""100%";r=0;t=2"#));
    assert!(response.extensions().get::<tower_quota::Decision>().is_some());
    assert!(response.body().is_end_stream());
}

#[tokio::test]
async fn what_can_never_fit_is_not_to_be_retried() {
    let limited = Limited::new(Policy::new().limit(Limit::new("units", Quota::per_minute(1)).cost_with(|_| 2)));
    let response = limited.send(call("application/grpc")).await;
    assert_eq!(field(&response, "grpc-status").as_deref(), Some("8"));
    assert_eq!(field(&response, "grpc-retry-pushback-ms").as_deref(), Some("-1"));
    assert_eq!(field(&response, "retry-after"), None);
}

#[tokio::test]
async fn a_missing_key_is_an_invalid_argument() {
    let tenant = key::from_fn("tenant é", |_| None::<String>);
    let limit = Limit::new("one", Quota::per_minute(1)).by(tenant).when_missing(MissingKey::Refuse);
    let response = Limited::new(Policy::new().limit(limit)).send(call("application/grpc")).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(field(&response, "grpc-status").as_deref(), Some("3"));
    assert_eq!(
        field(&response, "grpc-message").as_deref(),
        Some("The request cannot be counted: it has no tenant %C3%A9.")
    );
}

#[tokio::test]
async fn a_store_failure_is_unavailable() {
    let policy = once().on_store_failure(OnStoreFailure::Refuse);
    let service = RateLimitLayer::new(failing_store(), policy).layer(Inner::default());
    let response = service.oneshot(call("application/grpc").body(()).unwrap()).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(field(&response, "grpc-status").as_deref(), Some("14"));
    assert_eq!(field(&response, "grpc-retry-pushback-ms").as_deref(), Some("1000"));
}

#[tokio::test]
async fn the_content_type_is_a_known_one() {
    for (sent, answered) in [
        ("application/grpc", "application/grpc"),
        ("APPLICATION/gRPC", "application/grpc"),
        ("application/grpc; charset=utf-8", "application/grpc"),
        ("application/grpc+thrift", "application/grpc"),
        ("application/grpc-web", "application/grpc-web"),
        ("application/grpc-web+proto", "application/grpc-web+proto"),
        ("application/grpc-web-text", "application/grpc-web-text"),
        ("application/grpc-web-text+proto", "application/grpc-web-text+proto"),
        ("application/grpcurl", "application/problem+json"),
        ("application/json", "application/problem+json"),
    ] {
        let response = refused(|| call(sent)).await;
        assert_eq!(field(&response, "content-type").as_deref(), Some(answered), "{sent}");
    }
}

#[tokio::test]
async fn only_a_request_that_can_be_grpc_is_answered_as_such() {
    for (method, version) in [
        (Method::GET, Version::HTTP_2),
        (Method::HEAD, Version::HTTP_2),
        (Method::PUT, Version::HTTP_2),
        (Method::GET, Version::HTTP_11),
        (Method::HEAD, Version::HTTP_11),
        (Method::POST, Version::HTTP_11),
        (Method::POST, Version::HTTP_10),
    ] {
        let response = refused(|| call("application/grpc").method(&method).version(version)).await;
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS, "{method} {version:?}");
        assert_eq!(field(&response, "content-type").as_deref(), Some("application/problem+json"));
        assert_eq!(field(&response, "cache-control").as_deref(), Some("no-store"));
        assert_eq!(field(&response, "grpc-status"), None);
    }
    let response = refused(|| call("application/grpc").version(Version::HTTP_3)).await;
    assert_eq!(field(&response, "grpc-status").as_deref(), Some("8"));
    // As an outer translator of gRPC-Web hands it on.
    let response = refused(|| call("application/grpc").version(Version::HTTP_11).header("te", "trailers")).await;
    assert_eq!(field(&response, "grpc-status").as_deref(), Some("8"));
}

#[tokio::test]
async fn grpc_web_is_posted_over_any_version() {
    for version in [Version::HTTP_11, Version::HTTP_2] {
        for content_type in ["application/grpc-web", "application/grpc-web-text+proto"] {
            let response = refused(|| call(content_type).version(version)).await;
            assert_eq!(response.status(), StatusCode::OK, "{content_type} {version:?}");
            assert_eq!(field(&response, "content-type").as_deref(), Some(content_type));
            assert_eq!(field(&response, "grpc-status").as_deref(), Some("8"));
            assert_eq!(field(&response, "cache-control").as_deref(), Some("no-store"));
            assert!(response.body().is_end_stream());

            let response = refused(|| call(content_type).method(Method::GET).version(version)).await;
            assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS, "{content_type} {version:?}");
        }
    }
}
