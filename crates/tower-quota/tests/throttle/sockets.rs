//! Pushbacks in the header fields of a real server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::Empty;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tower::{Layer, ServiceExt};
use tower_quota::throttle::{Throttled, remote_headers};
use tower_quota::{
    Limit, Limiter, MemoryStore, Policy, Quota, RateLimitLayer, ThrottleLayer,
    throttle::ThrottleError,
};

type Outbound = Request<Empty<Bytes>>;

fn host(request: &Outbound) -> String {
    request
        .uri()
        .authority()
        .map(ToString::to_string)
        .unwrap_or_default()
}

pub(crate) async fn serve(app: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    format!("http://{address}/")
}

/// Returns a server that answers with this status and these fields, and counts its requests.
async fn remote(
    status: u16,
    fields: &[(&'static str, &'static str)],
) -> (String, Arc<AtomicUsize>) {
    let (requests, mut headers) = (Arc::new(AtomicUsize::new(0)), HeaderMap::new());
    for (name, value) in fields {
        headers.append(*name, value.parse().unwrap());
    }
    let (counted, status) = (Arc::clone(&requests), StatusCode::from_u16(status).unwrap());
    let answer = move || {
        counted.fetch_add(1, Ordering::Relaxed);
        std::future::ready((status, headers.clone(), "answer"))
    };
    (serve(Router::new().route("/", get(answer))).await, requests)
}

/// Sends two requests in sequence that must not wait, and returns the results.
async fn send_two(url: &str) -> [Result<StatusCode, Throttled>; 2] {
    let limiter = Limiter::new(MemoryStore::new(), "remote", Quota::per_minute(100));
    let throttle = ThrottleLayer::new(limiter, host)
        .pushback(remote_headers)
        .max_wait(Duration::ZERO);
    let client = throttle.layer(Client::builder(TokioExecutor::new()).build_http());
    let send = async || {
        let request: Outbound = Request::get(url).body(Empty::new()).unwrap();
        match client.clone().oneshot(request).await {
            Ok(response) => Ok(Response::status(&response)),
            Err(ThrottleError::Throttled(refusal)) => Err(refusal),
            Err(error) => panic!("{error}"),
        }
    };
    [send().await, send().await]
}

#[tokio::test]
async fn retry_after_holds_the_next_request() {
    for (status, value) in [
        (429, "30"),
        (503, "30"),
        (429, "Sun, 06 Nov 1994 08:50:07 GMT"),
    ] {
        let (url, requests) = remote(
            status,
            &[
                ("retry-after", value),
                ("date", "Sun, 06 Nov 1994 08:49:37 GMT"),
            ],
        )
        .await;
        let [first, second] = send_two(&url).await;
        assert_eq!(first.unwrap().as_u16(), status);
        let refusal = second.unwrap_err();
        assert!(refusal.decision().is_none());
        let retry = refusal.retry_after().unwrap();
        assert!(
            (Duration::from_secs(20)..=Duration::from_secs(30)).contains(&retry),
            "{value}: {retry:?}"
        );
        assert_eq!(requests.load(Ordering::Relaxed), 1, "{value}");
    }
}

#[tokio::test]
async fn hostile_remote_blocks_within_bounds() {
    let fields = [
        [("retry-after", "18446744073709551615"), ("x-a", "")],
        [
            ("retry-after", "Fri, 31 Dec 9999 23:59:59 GMT"),
            ("x-a", ""),
        ],
        [("ratelimit", "\"a\";r=0;t=999999999999999"), ("x-a", "")],
        [
            ("x-ratelimit-remaining", "0"),
            ("x-ratelimit-reset", "18446744073709551615"),
        ],
    ];
    for fields in fields {
        let (url, requests) = remote(429, &fields).await;
        let [_, second] = send_two(&url).await;
        assert!(
            second.unwrap_err().retry_after() <= Some(Duration::from_secs(300)),
            "{fields:?}"
        );
        assert_eq!(requests.load(Ordering::Relaxed), 1, "{fields:?}");
    }
}

#[tokio::test]
async fn invalid_fields_of_remote_are_ignored() {
    let fields = [
        ("retry-after", "soon"),
        ("retry-after", "-5"),
        ("ratelimit", "\"\\;r=0;t=9"),
        ("x-ratelimit-remaining", "none"),
        ("x-ratelimit-reset", "30"),
        ("grpc-retry-pushback-ms", "-1"),
    ];
    let (url, requests) = remote(429, &fields).await;
    let [first, second] = send_two(&url).await;
    assert_eq!(
        [first.unwrap(), second.unwrap()],
        [StatusCode::TOO_MANY_REQUESTS; 2]
    );
    assert_eq!(requests.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn spent_quota_of_remote_holds_back() {
    let limits = Policy::new().limit(Limit::new("minute", Quota::per_minute(1)));
    let app = Router::new()
        .route("/", get(|| async { "hello" }))
        .layer(RateLimitLayer::new(MemoryStore::new(), limits));
    let url = serve(app).await;
    let [first, second] = send_two(&url).await;
    assert_eq!(first.unwrap(), StatusCode::OK);
    // The remote would refuse the second request, so it is not sent.
    let retry = second.unwrap_err().retry_after().unwrap();
    assert!(
        (Duration::from_secs(50)..=Duration::from_secs(60)).contains(&retry),
        "{retry:?}"
    );
}
