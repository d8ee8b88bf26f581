//! Requests that wait for a place.

use std::time::Duration;

use http::Response;
use tokio::task::yield_now;
use tokio::time::advance;
use tower::Service;
use tower_quota_shed::{Cause, ConfigError, LimitSettings, Priority, ShedLayer};

use crate::service::{Running, around, ask, feed, fixed, get, hello, now, start};

fn queue(places: usize) -> ShedLayer {
    fixed(1)
        .priority(Priority::High.when(tower_quota::when::path("/high")))
        .queue(places, Duration::from_millis(100))
        .unwrap()
}

async fn status(running: Running) -> u16 {
    running.await.unwrap().unwrap().status().as_u16()
}

#[tokio::test(start_paused = true)]
async fn newest_request_of_the_best_class_is_next() {
    let layer = queue(10);
    let mut service = around(&layer);
    let (first, finish) = start(&mut service, get("/")).await;
    let mut waiting = Vec::new();
    for path in ["/", "/high", "/high", "/"] {
        waiting.push(start(&mut service, get(path)).await);
    }
    assert_eq!(layer.handle().stats().waiting, 4);
    finish.send(hello()).unwrap();
    assert_eq!(status(first).await, 200);
    for next in [2, 1, 1, 0] {
        yield_now().await;
        assert_eq!(layer.handle().stats().waiting, waiting.len() - 1);
        let (running, finish) = waiting.remove(next);
        // Only the request with the place receives its end.
        finish.send(hello()).unwrap();
        assert_eq!(status(running).await, 200, "{next}");
    }
    assert_eq!(layer.handle().stats().in_progress, 0);
}

#[tokio::test(start_paused = true)]
async fn request_without_a_place_in_time_is_refused() {
    let layer = queue(10);
    let mut service = around(&layer);
    let (_running, _finish) = start(&mut service, get("/")).await;
    let began = now();
    assert_eq!(ask(&mut service, get("/")).await, 503);
    assert_eq!(began.elapsed(), Duration::from_millis(100));
    let stats = layer.handle().stats();
    assert_eq!(stats.refused(Priority::Normal, Cause::Queue), 1);
}

#[tokio::test(start_paused = true)]
async fn waiting_request_gets_the_place_of_a_long_body() {
    let limit = LimitSettings::default().floor(1).start(1);
    let layer = ShedLayer::new().limit(limit).unwrap();
    let layer = layer.queue(1, Duration::from_secs(1)).unwrap();
    let mut service = around(&layer);
    let (running, finish) = start(&mut service, get("/")).await;
    let (_frames, content) = feed();
    finish.send(Response::new(content)).unwrap();
    let _long = running.await.unwrap().unwrap();
    let (waiting, finish) = start(&mut service, get("/")).await;
    finish.send(hello()).unwrap();
    // No request arrives or leaves meanwhile.
    assert_eq!(status(waiting).await, 200);
    assert_eq!(layer.handle().stats().waiting, 0);
}

#[tokio::test(start_paused = true)]
async fn full_queue_refuses_the_oldest_of_the_worst_class() {
    let layer = queue(2);
    let mut service = around(&layer);
    let (_running, _finish) = start(&mut service, get("/")).await;
    let (oldest, _finish) = start(&mut service, get("/")).await;
    let (_second, _finish) = start(&mut service, get("/high")).await;
    let (_third, _finish) = start(&mut service, get("/high")).await;
    assert_eq!(status(oldest).await, 503);
    let began = now();
    assert_eq!(
        ask(&mut service, get("/")).await,
        503,
        "two better requests wait"
    );
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert_eq!(layer.handle().stats().waiting, 2);
}

#[tokio::test(start_paused = true)]
async fn place_of_a_lost_waiting_client_goes_on() {
    let layer = queue(10);
    let mut service = around(&layer);
    let (first, finish) = start(&mut service, get("/")).await;
    let (patient, patient_finish) = start(&mut service, get("/")).await;
    let (lost, _finish) = start(&mut service, get("/")).await;
    lost.abort();
    assert!(lost.await.unwrap_err().is_cancelled());
    finish.send(hello()).unwrap();
    assert_eq!(status(first).await, 200);
    patient_finish.send(hello()).unwrap();
    assert_eq!(status(patient).await, 200);
    assert_eq!(layer.handle().stats().in_progress, 0);
}

#[tokio::test(start_paused = true)]
async fn client_lost_with_its_place_returns_the_place() {
    let layer = queue(10);
    let mut service = around(&layer);
    let (first, finish) = start(&mut service, get("/")).await;
    let mut waiting = Box::pin(service.call(get("/")));
    let poll =
        std::future::poll_fn(|cx| std::task::Poll::Ready(waiting.as_mut().poll(cx).is_ready()));
    assert!(!poll.await);
    finish.send(hello()).unwrap();
    assert_eq!(status(first).await, 200);
    // The place is on its way to the request.
    assert_eq!(layer.handle().stats().in_progress, 1);
    drop(waiting);
    assert_eq!(layer.handle().stats().in_progress, 0);
    advance(Duration::from_secs(1)).await;
    assert_eq!(ask(&mut service, get("/")).await, 200);
}

#[test]
fn wrong_queues_are_errors() {
    for (places, millis) in [(0, 100), (10_001, 100), (10, 0), (10, 60_001)] {
        let max_wait = Duration::from_millis(millis);
        let error = ShedLayer::new().queue(places, max_wait).unwrap_err();
        assert_eq!(error, ConfigError::Queue(places, max_wait));
    }
}
