//! What a refused client gets.

use std::convert::Infallible;
use std::time::Duration;

use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use tokio::time::advance;
use tower::{Layer, Service, ServiceExt, service_fn};
use tower_quota::throttle::{Retries, remote_headers};
use tower_quota::{Limiter, MemoryStore, Protocol, Quota, Refused, ThrottleLayer, when};
use tower_quota_shed::{ConfigError, Priority, ShedLayer};

use crate::service::{around, ask, content, fixed, get, hello, now, start};

#[tokio::test]
async fn refusal_has_problem_details() {
    let layer = fixed(1);
    let mut service = around(&layer);
    let (_running, _finish) = start(&mut service, get("/")).await;
    let refused = service.call(get("/")).await.unwrap();
    assert_eq!(refused.status(), 503);
    let headers = refused.headers();
    assert_eq!(headers["content-type"], "application/problem+json");
    assert_eq!(headers["cache-control"], "no-store");
    let seconds: u64 = headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=2).contains(&seconds), "{seconds}");
    let body = refused.into_body().collect().await.unwrap().to_bytes();
    let body = std::str::from_utf8(&body).unwrap();
    assert!(body.contains("#temporary-reduced-capacity"), "{body}");
    assert!(
        body.ends_with(r#""status":503,"detail":"The service is overloaded."}"#),
        "{body}"
    );
}

#[tokio::test]
async fn grpc_call_gets_unavailable() {
    let layer = fixed(1).protocol(Protocol::Both);
    let mut service = around(&layer);
    let (_running, _finish) = start(&mut service, get("/")).await;
    let call = Request::post("/a.B/C")
        .version(http::Version::HTTP_2)
        .header("content-type", "application/grpc");
    let refused = service.call(call.body(()).unwrap()).await.unwrap();
    assert_eq!(refused.status(), 200);
    assert_eq!(refused.headers()["grpc-status"], "14");
    let wait = remote_headers(&refused.map(drop)).unwrap();
    assert!(wait >= Duration::from_secs(1), "{wait:?}");
}

#[tokio::test]
async fn own_answer_replaces_problem_details() {
    let answer = |refused: &Refused<'_>| {
        let mut response = Response::new(refused.detail());
        *response.status_mut() = refused.status();
        response
    };
    let layer = fixed(1).on_refused(answer);
    let mut service = around(&layer);
    let (_running, _finish) = start(&mut service, get("/")).await;
    let refused = service.call(get("/")).await.unwrap();
    assert_eq!(refused.headers()["cache-control"], "no-store");
    let body = refused.into_body().collect().await.unwrap().to_bytes();
    assert!(body.starts_with(b"The service is overloaded"));
}

#[tokio::test]
async fn refusal_names_its_class_and_cause() {
    for (content_type, status) in [("text/plain", 503), ("application/grpc", 200)] {
        let layer = fixed(1).protocol(Protocol::Both);
        let layer = layer.priority(Priority::High.when(when::path("/a.B/C")));
        let mut service = around(&layer);
        let (_running, _finish) = start(&mut service, get("/")).await;
        let call = Request::post("/a.B/C")
            .version(http::Version::HTTP_2)
            .header("content-type", content_type);
        let refused = service.call(call.body(()).unwrap()).await.unwrap();
        assert_eq!(refused.status(), status);
        assert_eq!(refused.headers()["tower-quota-shed-priority"], "high");
        assert_eq!(refused.headers()["tower-quota-shed-cause"], "limit");
    }
}

/// Returns the retry times of 200 requests in seconds, with this many refusals for each answer in the second before.
async fn waits(refusals: usize) -> Vec<u64> {
    let layer = fixed(1);
    let mut service = around(&layer);
    for _ in 0..20 {
        let (running, finish) = start(&mut service, get("/")).await;
        for _ in 0..refusals {
            assert_eq!(ask(&mut service, get("/")).await, 503);
        }
        finish.send(hello()).unwrap();
        running.await.unwrap().unwrap();
    }
    advance(Duration::from_secs(1)).await;
    let (_running, _finish) = start(&mut service, get("/")).await;
    let mut waits = Vec::new();
    for _ in 0..200 {
        let refused = service.call(get("/")).await.unwrap();
        let wait = refused.headers()["retry-after"].to_str().unwrap();
        waits.push(wait.parse().unwrap());
    }
    waits.sort_unstable();
    waits
}

#[tokio::test(start_paused = true)]
async fn wait_grows_with_the_pressure_and_is_spread() {
    // The first answer of a fresh layer is not counted, because shedding has not begun.
    for (refusals, least, most) in [(3, 4, 9), (9, 10, 22), (1_000, 30, 60)] {
        let waits = waits(refusals).await;
        assert!(waits[0] >= least, "{refusals}: {waits:?}");
        assert!(waits[199] <= most, "{refusals}: {waits:?}");
        assert!(waits[199] >= waits[0] + least / 2, "{waits:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn throttled_client_waits_and_is_answered() {
    let layer = fixed(1);
    let mut server = around(&layer);
    let (running, finish) = start(&mut server, get("/")).await;
    let remote = layer.layer(service_fn(async |_: Request<Full<bytes::Bytes>>| {
        Ok::<_, Infallible>(Response::new(content("done")))
    }));
    let limiter = Limiter::new(MemoryStore::new(), "remote", Quota::per_second(100));
    let throttle = ThrottleLayer::global(limiter)
        .pushback(remote_headers)
        .max_wait(Duration::from_secs(60))
        .retries(Retries::http());
    let client = throttle.layer(remote);
    let began = now();
    let call = tokio::spawn(client.oneshot(Request::new(Full::default())));
    tokio::time::advance(Duration::from_millis(500)).await;
    finish.send(hello()).unwrap();
    running.await.unwrap().unwrap();
    let answer = call.await.unwrap().unwrap();
    assert_eq!(answer.status(), 200);
    assert!(
        began.elapsed() >= Duration::from_secs(1),
        "the client retried early"
    );
}

#[tokio::test]
async fn wrong_retry_times_are_errors() {
    let second = Duration::from_secs(1);
    for (least, most) in [
        (second / 2, second),
        (2 * second, second),
        (second, 3_601 * second),
    ] {
        let error = ShedLayer::new().retry_after(least, most).unwrap_err();
        assert_eq!(error, ConfigError::RetryAfter(least, most));
    }
}
