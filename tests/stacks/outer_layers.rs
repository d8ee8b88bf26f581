//! Tests layers around the limit: how they change its responses, and which requests they answer uncounted.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Empty;
use hyper::body::Incoming;
use tower::ServiceBuilder;
use tower::retry::{Policy, RetryLayer};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::cors::{Any, CorsLayer};
use tower_http::limit::RequestBodyLimitLayer;
use tower_http::map_request_body::MapRequestBodyLayer;
use tower_http::normalize_path::NormalizePathLayer;

use tower_http::request_id::{PropagateRequestIdLayer, SetRequestIdLayer};
use tower_http::set_header::{SetRequestHeaderLayer, SetResponseHeaderLayer};
use tower_http::set_status::SetStatusLayer;
use tower_http::timeout::TimeoutLayer;
use tower_http::trace::TraceLayer;
use tower_http::validate_request::ValidateRequestHeaderLayer;
use tower_quota::settle::Settle;
use tower_quota::{Limit, MissingKey, Quota, key};

use crate::each_layer::{LONG, SET, SameId};
use crate::limited::{limited, limited_by, three_per_minute};
use crate::server::{assert_admitted, assert_refused, assert_refused_head, decoded, field, serve};

/// Returns a request of a page at another origin.
pub(crate) fn cross_origin() -> http::request::Builder {
    Request::get("/")
        .header("origin", "https://page.test")
        .header("accept-encoding", "gzip")
}

/// Returns a browser's preflight request.
pub(crate) fn preflight() -> http::request::Builder {
    Request::options("/")
        .header("origin", "https://page.test")
        .header("access-control-request-method", "GET")
}

#[tokio::test]
async fn outer_compression_compresses_refusal() {
    let server = serve!(CompressionLayer::new(), limited());
    let refused = server
        .refused(|| Request::get("/").header("accept-encoding", "gzip"))
        .await;
    assert_refused(&decoded(refused).await);
}

#[tokio::test]
async fn outer_cors_shows_refusal_to_page() {
    let cors = CorsLayer::new()
        .allow_origin(Any)
        .expose_headers(limited().exposed_headers());
    let server = serve!(cors, limited());
    let refused = server.refused(cross_origin).await;
    assert_refused(&refused);
    assert_eq!(field(&refused, "access-control-allow-origin"), Some("*"));
    let exposed = field(&refused, "access-control-expose-headers").unwrap();
    assert!(
        exposed.split(',').any(|name| name == "retry-after"),
        "{exposed}"
    );
}

#[tokio::test]
async fn outer_cors_answers_preflight_uncounted() {
    let server = serve!(
        CorsLayer::new()
            .allow_origin(Any)
            .allow_methods([Method::GET]),
        limited()
    );
    for _ in 0..4 {
        let allowed = server.send(preflight()).await;
        assert_eq!(allowed.status(), 200);
        assert_eq!(field(&allowed, "access-control-allow-methods"), Some("GET"));
        assert_eq!(field(&allowed, "ratelimit"), None);
    }
    assert_admitted(&server.get("/").await, "2");
}

/// Returns a layer that ends requests which never end. Other requests are sent without it, for slow machines.
fn timeout() -> TimeoutLayer {
    TimeoutLayer::with_status_code(StatusCode::REQUEST_TIMEOUT, Duration::from_millis(20))
}

#[tokio::test]
async fn outer_timeout_refunds_turn() {
    let turns = Limit::new("turns", Quota::per_minute(1).burst(2).leaky_bucket()).max_wait(LONG);
    let limited = limited_by(turns, false);
    let (without_timeout, with_timeout) = (serve!(limited.clone()), serve!(timeout(), limited));
    assert_eq!(without_timeout.get("/").await.status(), 200);
    // One place is left. Were it kept, the second of these would be refused.
    assert_eq!(with_timeout.get("/").await.status(), 408);
    assert_eq!(with_timeout.get("/").await.status(), 408);
}

#[tokio::test]
async fn outer_timeout_refunds_abandoned_charge() {
    for is_slow in [false, true] {
        let limited = limited_by(three_per_minute().on_abandoned(Settle::Refund), is_slow);
        let (without_timeout, with_timeout) = (serve!(limited.clone()), serve!(timeout(), limited));
        assert_eq!(with_timeout.get("/never").await.status(), 408);
        assert_admitted(&without_timeout.get("/").await, "2");
    }
}

#[tokio::test]
async fn outer_body_limit_refuses_uncounted() {
    let server = serve!(RequestBodyLimitLayer::new(10), limited());
    let too_large = server.open(Request::post("/echo"), &[b'x'; 11]).await;
    assert_eq!(too_large.status(), 413);
    assert_eq!(field(&too_large, "ratelimit"), None);
    assert_admitted(&server.get("/").await, "2");
}

#[tokio::test]
async fn outer_catch_panic_sees_refunded_charge() {
    for is_slow in [false, true] {
        let server = serve!(
            CatchPanicLayer::new(),
            limited_by(three_per_minute().on_abandoned(Settle::Refund), is_slow)
        );
        assert_eq!(server.get("/panic").await.status(), 500);
        assert_admitted(&server.get("/").await, "2");

        // A limit that does not settle keeps the charge.
        let server = serve!(
            CatchPanicLayer::new(),
            limited_by(three_per_minute(), is_slow)
        );
        assert_eq!(server.get("/panic").await.status(), 500);
        assert_admitted(&server.get("/").await, "1");
    }
}

#[tokio::test]
async fn outer_header_is_set_on_refusal() {
    let server = serve!(
        SetResponseHeaderLayer::overriding(SET, HeaderValue::from_static("set")),
        limited()
    );
    let refused = server.refused(|| Request::get("/")).await;
    assert_refused(&refused);
    assert_eq!(field(&refused, "x-set"), Some("set"));
}

#[tokio::test]
async fn outer_request_header_is_the_key() {
    let by_header = three_per_minute()
        .by(key::header("x-set"))
        .when_missing(MissingKey::Refuse);
    let set = SetRequestHeaderLayer::overriding(SET, HeaderValue::from_static("set"));
    let server = serve!(set.clone(), limited_by(by_header.clone(), false));
    assert_admitted(&server.get("/").await, "2");

    let server = serve!(limited_by(by_header, false), set);
    assert_eq!(server.get("/").await.status(), 400);
}

#[tokio::test]
async fn outer_validation_refuses_uncounted() {
    let server = serve!(ValidateRequestHeaderLayer::accept("text/html"), limited());
    let invalid = server
        .send(Request::get("/").header("accept", "image/png"))
        .await;
    assert_eq!(invalid.status(), 406);
    assert_eq!(field(&invalid, "ratelimit"), None);
    assert_admitted(&server.get("/").await, "2");
}

#[tokio::test]
async fn outer_normalized_path_is_the_key() {
    let by_path = || {
        three_per_minute().by(key::from_fn("path", |head| {
            Some(head.uri().path().to_owned())
        }))
    };
    let server = serve!(
        NormalizePathLayer::trim_trailing_slash(),
        limited_by(by_path(), false)
    );
    assert_admitted(&server.get("/a").await, "2");
    assert_admitted(&server.get("/a/").await, "1");

    let server = serve!(
        limited_by(by_path(), false),
        NormalizePathLayer::trim_trailing_slash()
    );
    assert_admitted(&server.get("/a").await, "2");
    assert_admitted(&server.get("/a/").await, "2");
}

#[tokio::test]
async fn outer_status_replaces_refusals() {
    let server = serve!(SetStatusLayer::new(StatusCode::ACCEPTED), limited());
    let refused = server.refused(|| Request::get("/")).await;
    assert_eq!(refused.status(), 202);
    assert_eq!(field(&refused, "retry-after"), Some("20"));
}

#[tokio::test]
async fn outer_request_id_is_on_refusal() {
    let (set, propagate) = (
        SetRequestIdLayer::x_request_id(SameId),
        PropagateRequestIdLayer::x_request_id(),
    );
    let refused = serve!(set, propagate, limited())
        .refused(|| Request::get("/"))
        .await;
    assert_refused(&refused);
    assert_eq!(field(&refused, "x-request-id"), Some("same"));
}

#[tokio::test]
async fn outer_trace_sees_refusal() {
    let statuses = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&statuses);
    let trace = TraceLayer::new_for_http().on_response(
        move |response: &Response<_>, _: Duration, _: &tracing::Span| {
            seen.lock().unwrap().push(response.status().as_u16());
        },
    );
    assert_refused_head(&serve!(trace, limited()).refused(|| Request::get("/")).await);
    assert_eq!(*statuses.lock().unwrap(), [200, 200, 200, 429]);
}

/// Tries again while the service fails, so many times.
#[derive(Clone)]
pub(crate) struct Retries(pub(crate) u8);

impl<R> Policy<Request<Empty<Bytes>>, Response<R>, Infallible> for Retries {
    type Future = Ready<()>;

    fn retry(
        &mut self,
        _: &mut Request<Empty<Bytes>>,
        result: &mut Result<Response<R>, Infallible>,
    ) -> Option<Self::Future> {
        let failed = matches!(result, Ok(response) if response.status() == StatusCode::BAD_GATEWAY);
        self.0 = self.0.checked_sub(u8::from(failed))?;
        failed.then(|| ready(()))
    }

    fn clone_request(&mut self, request: &Request<Empty<Bytes>>) -> Option<Request<Empty<Bytes>>> {
        Some(request.clone())
    }
}

/// Drops the bodies of requests, so that these can be cloned.
pub(crate) fn without_body() -> MapRequestBodyLayer<fn(Incoming) -> Empty<Bytes>> {
    MapRequestBodyLayer::new(|_| Empty::new())
}

#[tokio::test]
async fn outer_retry_is_charged_each_time() {
    let server = serve!(without_body(), RetryLayer::new(Retries(1)), limited());
    let failed = server.get("/fail").await;
    assert_eq!(failed.status(), 502);
    assert_eq!(field(&failed, "x-ratelimit-remaining"), Some("1"));
}

#[tokio::test]
async fn paired_limits_report_the_stricter() {
    let wide = Limit::new("wide", Quota::per_minute(10));
    let stack = ServiceBuilder::new()
        .layer(limited_by(wide, true))
        .layer(limited());
    let server = serve!(stack);
    assert_eq!(
        field(&server.get("/").await, "x-ratelimit-remaining"),
        Some("2")
    );
    assert_refused(&server.refused(|| Request::get("/")).await);
}
