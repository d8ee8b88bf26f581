//! What a refused client gets, and what the program learns.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use tokio::time::advance;
use tower::{Layer, Service, ServiceExt, service_fn};
use tower_quota::throttle::{Retries, remote_headers};
use tower_quota::{Limiter, MemoryStore, Protocol, Quota, Refused, ThrottleLayer};
use tower_quota_shed::{Cause, ConfigError, Priority, ShedLayer};

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
async fn listener_learns_the_cause() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let layer = fixed(1).priority(|_| Priority::High).on_shed(move |shed| {
        let path = shed.head.uri().path().to_owned();
        assert!(shed.retry_after >= Duration::from_secs(1));
        log.lock().unwrap().push((path, shed.priority, shed.cause));
    });
    let mut service = around(&layer);
    let (_running, _finish) = start(&mut service, get("/")).await;
    assert_eq!(ask(&mut service, get("/orders")).await, 503);
    let expected = ("/orders".to_owned(), Priority::High, Cause::Limit);
    assert_eq!(*seen.lock().unwrap(), [expected]);
}

/// Returns the retry times of 200 requests, with this many refusals for each answer in the second before.
async fn waits(refusals: usize) -> Vec<Duration> {
    let waits = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&waits);
    let layer = fixed(1).on_shed(move |shed| log.lock().unwrap().push(shed.retry_after));
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
    waits.lock().unwrap().clear();
    let (_running, _finish) = start(&mut service, get("/")).await;
    for _ in 0..200 {
        ask(&mut service, get("/")).await;
    }
    let waits = waits.lock().unwrap();
    waits.clone()
}

#[tokio::test(start_paused = true)]
async fn wait_grows_with_the_pressure_and_is_spread() {
    for (refusals, least) in [(1, 2), (9, 10), (1_000, 30)] {
        let mut waits = waits(refusals).await;
        waits.sort_unstable();
        let least = Duration::from_secs(least);
        let most = Duration::from_secs(60).min(2 * least);
        // The first answer of a fresh layer is not counted yet, when shedding has not begun.
        assert!(
            waits[0] >= least.mul_f64(0.95),
            "{refusals}: {:?}",
            waits[0]
        );
        assert!(
            waits[199] <= most.mul_f64(1.1),
            "{refusals}: {:?}",
            waits[199]
        );
        assert!(waits[100] - waits[0] > least / 4, "{waits:?}");
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
