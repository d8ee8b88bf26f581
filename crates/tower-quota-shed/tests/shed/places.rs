//! When a request takes a place, and when it returns the place.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Response};
use http_body::Frame;
use http_body_util::BodyExt;
use tokio::time::advance;
use tower::{Layer, Service, service_fn};
use tower_quota::when;
use tower_quota_shed::{Cause, ConfigError, LimitSettings, Priority, ShedLayer, ShedService};

use crate::service::{
    Answer, Content, Frames, Worker, around, ask, content, feed, fixed, get, hello, start,
};

#[tokio::test]
async fn full_service_refuses() {
    let layer = fixed(2);
    let (mut service, handle) = (around(&layer), layer.handle());
    let (first, finish) = start(&mut service, get("/")).await;
    let (_second, _finish) = start(&mut service, get("/")).await;
    assert_eq!(handle.stats().in_progress, 2);
    assert_eq!(ask(&mut service, get("/")).await, 503);

    finish.send(hello()).unwrap();
    first.await.unwrap().unwrap();
    assert_eq!(ask(&mut service, get("/")).await, 200);
    assert_eq!(handle.stats().in_progress, 1);
    assert_eq!(handle.stats().all_refused(), 1);
}

#[tokio::test]
async fn body_holds_its_place_until_the_end() {
    let layer = fixed(1);
    let mut service = around(&layer);
    let in_progress = || layer.handle().stats().in_progress;
    for last in [
        None,
        Some(Ok(Frame::trailers(HeaderMap::new()))),
        Some(Err("cut")),
    ] {
        let (running, finish) = start(&mut service, get("/")).await;
        let (frames, content) = feed();
        finish.send(Response::new(content)).unwrap();
        let mut body = running.await.unwrap().unwrap().into_body();
        frames.send(Ok(Frame::data(Bytes::from("part")))).unwrap();
        assert!(body.frame().await.unwrap().is_ok());
        assert_eq!((in_progress(), ask(&mut service, get("/")).await), (1, 503));
        if let Some(last) = last {
            frames.send(last).unwrap();
        }
        drop(frames);
        while body.frame().await.is_some_and(|frame| frame.is_ok()) {}
        assert_eq!(in_progress(), 0);
    }

    let (running, finish) = start(&mut service, get("/")).await;
    let (_frames, content) = feed();
    finish.send(Response::new(content)).unwrap();
    let answer = running.await.unwrap().unwrap();
    assert_eq!(in_progress(), 1);
    drop(answer);
    assert_eq!(in_progress(), 0, "the client has gone");
}

/// Starts a request whose body does not end.
async fn send_body(service: &mut ShedService<Worker>) -> (Answer, Frames) {
    let (running, finish) = start(service, get("/")).await;
    let (frames, content) = feed();
    finish.send(Response::new(content)).unwrap();
    (running.await.unwrap().unwrap(), frames)
}

#[tokio::test(start_paused = true)]
async fn long_body_leaves_the_limit_below_the_ceiling() {
    let limit = LimitSettings::default().floor(1).start(1).ceiling(3);
    let layer = ShedLayer::new().limit(limit).unwrap();
    let mut service = around(&layer);
    let mut bodies = Vec::new();
    for long in 0..3 {
        assert_eq!(ask(&mut service, get("/")).await, 200, "{long} long bodies");
        bodies.push(send_body(&mut service).await);
        assert_eq!(ask(&mut service, get("/")).await, 503, "the body is young");
        advance(Duration::from_millis(200)).await;
    }
    assert_eq!(ask(&mut service, get("/")).await, 503, "the ceiling");
    let stats = layer.handle().stats();
    assert_eq!((stats.in_progress, stats.long_bodies), (3, 3));
    assert_eq!(stats.refused(Priority::Normal, Cause::Limit), 4);
    bodies.remove(1);
    assert_eq!(ask(&mut service, get("/")).await, 200);
    bodies.clear();
    assert_eq!(layer.handle().stats().in_progress, 0);
}

#[tokio::test(start_paused = true)]
async fn long_body_holds_its_place_by_choice() {
    let limit = LimitSettings::default().floor(1).start(1);
    let layer = ShedLayer::new().limit(limit).unwrap();
    let layer = layer.until_end(when::path("/"));
    let mut service = around(&layer);
    let body = send_body(&mut service).await;
    advance(Duration::from_secs(3_600)).await;
    assert_eq!(ask(&mut service, get("/")).await, 503);
    drop(body);
    assert_eq!(ask(&mut service, get("/")).await, 200);
    assert_eq!(layer.handle().stats().in_progress, 0);
}

#[tokio::test]
async fn empty_body_holds_no_place() {
    let layer = fixed(1);
    let mut service = around(&layer);
    let (running, finish) = start(&mut service, get("/")).await;
    finish.send(Response::new(content(""))).unwrap();
    let answer = running.await.unwrap().unwrap();
    assert_eq!(layer.handle().stats().in_progress, 0);
    drop(answer);
}

#[tokio::test]
async fn exempt_request_takes_no_place() {
    let layer = fixed(1).exempt(when::path("/events"));
    let mut service = around(&layer);
    let (_long, _finish) = start(&mut service, get("/events")).await;
    assert_eq!(layer.handle().stats().in_progress, 0);
    let (_running, _finish) = start(&mut service, get("/")).await;
    assert_eq!(ask(&mut service, get("/")).await, 503);
    // Health checks are always exempt.
    for path in ["/events", "/healthz", "/livez", "/readyz"] {
        assert_eq!(ask(&mut service, get(path)).await, 200, "{path}");
    }
}

#[tokio::test]
async fn rewritten_path_is_no_health_check() {
    let mut service = around(&fixed(1));
    let (_running, _finish) = start(&mut service, get("/")).await;
    let original = axum::extract::OriginalUri("/orders/healthz".parse().unwrap());
    let request = http::Request::get("/healthz").extension(original);
    assert_eq!(ask(&mut service, request.body(()).unwrap()).await, 503);
}

#[tokio::test]
async fn lost_client_returns_its_place() {
    let layer = fixed(1);
    let mut service = around(&layer);
    let (running, _finish) = start(&mut service, get("/")).await;
    assert_eq!(ask(&mut service, get("/")).await, 503);
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    assert_eq!(ask(&mut service, get("/")).await, 200);
    assert_eq!(layer.handle().stats().in_progress, 0);
}

#[tokio::test]
async fn failure_returns_the_place() {
    let layer = fixed(1);
    let mut service = around(&layer);
    let (running, finish) = start(&mut service, get("/")).await;
    drop(finish);
    assert_eq!(running.await.unwrap().unwrap_err(), "failed");
    assert_eq!(layer.handle().stats().in_progress, 0);
}

#[tokio::test]
async fn panic_returns_the_place() {
    type Never = std::future::Ready<Result<Response<Content>, ()>>;
    let layer = fixed(1);
    let mut in_call = layer.layer(service_fn(|_| -> Never { panic!("in the call") }));
    let mut in_poll = layer.layer(service_fn(async |_| -> Result<Response<Content>, ()> {
        panic!("in the poll")
    }));
    let call = tokio::spawn(async move { in_call.call(get("/")).await.map(drop) });
    assert!(call.await.unwrap_err().is_panic());
    let poll = tokio::spawn(async move { in_poll.call(get("/")).await.map(drop) });
    assert!(poll.await.unwrap_err().is_panic());
    assert_eq!(layer.handle().stats().in_progress, 0);
}

#[test]
fn runtime_ending_returns_all_places() {
    let layer = fixed(8);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    let mut service = around(&layer);
    let finishes = runtime.block_on(async {
        let mut finishes = Vec::new();
        for _ in 0..8 {
            finishes.push(start(&mut service, get("/")).await.1);
        }
        finishes
    });
    assert_eq!(layer.handle().stats().in_progress, 8);
    drop(runtime);
    assert_eq!(layer.handle().stats().in_progress, 0);
    drop(finishes);
}

#[test]
fn mistakes_are_errors() {
    let error = ShedLayer::new().limit(LimitSettings::fixed(0)).unwrap_err();
    assert!(
        matches!(error, ConfigError::LimitRange { floor: 0, .. }),
        "{error}"
    );
}
