//! Tests layers inside the limit: their responses are counted and carry its fields, refusals never reach them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{HeaderValue, Request, Response, StatusCode};
use tower::retry::RetryLayer;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::cors::CorsLayer;
use tower_http::limit::RequestBodyLimitLayer;
use tower_http::request_id::{PropagateRequestIdLayer, SetRequestIdLayer};
use tower_http::set_header::SetResponseHeaderLayer;
use tower_http::set_status::SetStatusLayer;
use tower_http::timeout::TimeoutLayer;
use tower_http::trace::TraceLayer;
use tower_http::validate_request::ValidateRequestHeaderLayer;
use tower_quota::{Limit, Quota, settle, when};

use crate::each_layer::{SET, SameId};
use crate::limited::{limited, limited_by, three_per_minute};
use crate::outer_layers::{Retries, cross_origin, preflight, without_body};
use crate::server::{Reply, assert_admitted, assert_fields, assert_refused, decoded, field, serve};

#[tokio::test]
async fn inner_compression_leaves_refusal_plain() {
    let server = serve!(limited(), CompressionLayer::new());
    let long = server
        .send(Request::get("/long").header("accept-encoding", "gzip"))
        .await;
    assert_admitted(&long, "2");
    assert_eq!(decoded(long).await.body(), &[b'x'; 1_000][..]);
    let refused = server
        .refused(|| Request::get("/").header("accept-encoding", "gzip"))
        .await;
    assert_refused(&refused);
    assert_eq!(field(&refused, "content-encoding"), None);
}

#[tokio::test]
async fn inner_compression_shrinks_counted_bytes() {
    let bytes = || {
        limited_by(
            Limit::new("bytes", Quota::per_minute(10_000)).settle(settle::body_bytes(1)),
            false,
        )
    };
    let long = || Request::get("/long").header("accept-encoding", "gzip");
    let left = |reply: Reply| {
        field(&reply, "x-ratelimit-remaining")
            .unwrap()
            .parse::<u64>()
            .unwrap()
    };

    let outside = serve!(CompressionLayer::new(), bytes());
    decoded(outside.send(long()).await).await;
    assert_eq!(left(outside.send(long()).await), 10_000 - 1_000 - 1);

    let inside = serve!(bytes(), CompressionLayer::new());
    let sent = inside.send(long()).await.body().len() as u64;
    assert!(sent < 1_000, "{sent}");
    assert_eq!(left(inside.send(long()).await), 10_000 - sent - 1);
}

#[tokio::test]
async fn inner_cors_hides_refusal_from_page() {
    let server = serve!(limited(), CorsLayer::permissive());
    assert_eq!(
        field(
            &server.send(cross_origin()).await,
            "access-control-allow-origin"
        ),
        Some("*")
    );
    let refused = server.refused(cross_origin).await;
    assert_refused(&refused);
    assert_eq!(field(&refused, "access-control-allow-origin"), None);
}

#[tokio::test]
async fn inner_cors_preflight_is_counted_unless_excepted() {
    let server = serve!(limited(), CorsLayer::permissive());
    assert_admitted(&server.send(preflight()).await, "2");

    let server = serve!(
        limited_by(three_per_minute().unless(when::cors_preflight()), false),
        CorsLayer::permissive()
    );
    assert_eq!(
        field(&server.send(preflight()).await, "x-ratelimit-remaining"),
        None
    );
    assert_admitted(&server.get("/").await, "2");
}

#[tokio::test]
async fn inner_timeout_is_counted() {
    let timeout =
        TimeoutLayer::with_status_code(StatusCode::REQUEST_TIMEOUT, Duration::from_millis(20));
    let late = serve!(limited(), timeout).get("/never").await;
    assert_eq!(late.status(), 408);
    assert_fields(&late, "2");
}

#[tokio::test]
async fn inner_body_limit_is_counted() {
    let server = serve!(limited(), RequestBodyLimitLayer::new(10));
    let too_large = server.open(Request::post("/echo"), &[b'x'; 11]).await;
    assert_eq!(too_large.status(), 413);
    assert_fields(&too_large, "2");
    let echoed = server.open(Request::post("/echo"), b"x").await;
    assert_admitted(&echoed, "1");
}

#[tokio::test]
async fn inner_catch_panic_failure_is_settled() {
    for is_slow in [false, true] {
        let server = serve!(
            limited_by(three_per_minute(), is_slow),
            CatchPanicLayer::new()
        );
        let failed = server.get("/panic").await;
        assert_eq!(failed.status(), 500);
        assert_fields(&failed, "2");

        let successes = three_per_minute().settle(settle::only_successes());
        let server = serve!(limited_by(successes, is_slow), CatchPanicLayer::new());
        assert_eq!(server.get("/panic").await.status(), 500);
        assert_admitted(&server.get("/").await, "2");
    }
}

#[tokio::test]
async fn inner_header_is_not_on_refusal() {
    let server = serve!(
        limited(),
        SetResponseHeaderLayer::overriding(SET, HeaderValue::from_static("set"))
    );
    assert_eq!(field(&server.get("/").await, "x-set"), Some("set"));
    let refused = server.refused(|| Request::get("/")).await;
    assert_refused(&refused);
    assert_eq!(field(&refused, "x-set"), None);
}

#[tokio::test]
async fn inner_validation_is_counted() {
    let server = serve!(limited(), ValidateRequestHeaderLayer::accept("text/html"));
    let invalid = server
        .send(Request::get("/").header("accept", "image/png"))
        .await;
    assert_eq!(invalid.status(), 406);
    assert_fields(&invalid, "2");
}

#[tokio::test]
async fn inner_status_leaves_refusal_alone() {
    let server = serve!(limited(), SetStatusLayer::new(StatusCode::ACCEPTED));
    assert_eq!(server.get("/").await.status(), 202);
    assert_refused(&server.refused(|| Request::get("/")).await);
}

#[tokio::test]
async fn inner_request_id_is_not_on_refusal() {
    let (set, propagate) = (
        SetRequestIdLayer::x_request_id(SameId),
        PropagateRequestIdLayer::x_request_id(),
    );
    let server = serve!(limited(), set, propagate);
    assert_eq!(field(&server.get("/").await, "x-request-id"), Some("same"));
    assert_eq!(
        field(&server.refused(|| Request::get("/")).await, "x-request-id"),
        None
    );
}

#[tokio::test]
async fn inner_trace_never_sees_refusal() {
    let statuses = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&statuses);
    let trace = TraceLayer::new_for_http().on_response(
        move |response: &Response<_>, _: Duration, _: &tracing::Span| {
            seen.lock().unwrap().push(response.status().as_u16());
        },
    );
    assert_refused(&serve!(limited(), trace).refused(|| Request::get("/")).await);
    assert_eq!(*statuses.lock().unwrap(), [200, 200, 200]);
}

#[tokio::test]
async fn inner_retries_are_one_charge() {
    let failed = serve!(without_body(), limited(), RetryLayer::new(Retries(2)))
        .get("/fail")
        .await;
    assert_eq!(failed.status(), 502);
    assert_fields(&failed, "2");
}
