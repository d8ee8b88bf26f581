//! The number of store calls and their charges.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Method, Request, StatusCode};
use tower::{Layer, ServiceExt};
use tower_quota::{Limit, MemoryStore, MissingKey, Policy, Quota, RateLimitLayer, key};
use tower_quota_testkit::ManualClock;

use crate::fixture::{Inner, StoreControl, slow_store};

#[tokio::test]
async fn all_limits_share_one_store_call() {
    let store = slow_store();
    let policy = Policy::new()
        .limit(Limit::new("a", Quota::per_minute(9)))
        .limit(Limit::new("b", Quota::per_minute(9)).by(key::method()))
        .limit(
            Limit::new("c", Quota::per_minute(9))
                .by(key::header("k"))
                .when_missing(MissingKey::ShareOneCounter),
        );
    let service = RateLimitLayer::new(store.clone(), policy).layer(Inner::default());
    service.oneshot(Request::new(())).await.unwrap();
    assert_eq!(store.charge_counts(), [3]);
}

#[tokio::test]
async fn request_without_limits_skips_the_store() {
    let store = slow_store();
    let policy = Policy::new()
        .limit(Limit::new("posts", Quota::per_minute(9)).when(|head| head.method() == Method::POST))
        .limit(
            Limit::new("keyed", Quota::per_minute(9))
                .by(key::header("k"))
                .when_missing(MissingKey::Skip),
        );
    let service = RateLimitLayer::new(store.clone(), policy).layer(Inner::default());
    let response = service.clone().oneshot(Request::new(())).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert!(store.charge_counts().is_empty());
    service
        .oneshot(Request::post("/").body(()).unwrap())
        .await
        .unwrap();
    assert_eq!(store.charge_counts(), [1]);
}

#[tokio::test]
async fn shared_key_is_read_once() {
    let reads = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&reads);
    let extractor = key::from_fn("user", move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        Some("ann")
    });
    let policy = Policy::new()
        .limit(Limit::new("a", Quota::per_minute(9)).by(extractor.clone()))
        .limit(Limit::new("b", Quota::per_minute(9)).by(extractor))
        .limit(
            Limit::new("not now", Quota::per_minute(9))
                .by(key::from_fn("x", |_| -> Option<String> {
                    panic!("a limit that does not apply reads nothing")
                }))
                .when(|_| false),
        );
    let store = MemoryStore::with_clock(10, ManualClock::default());
    let service = RateLimitLayer::new(store.clone(), policy).layer(Inner::default());
    service.oneshot(Request::new(())).await.unwrap();
    assert_eq!(reads.load(Ordering::Relaxed), 1);
    assert_eq!(store.len(), 1, "one entry with both its limits");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_requests_get_exactly_the_quota() {
    let policy = Policy::new().limit(Limit::new("hundred", Quota::per_hour(100)));
    let layer = RateLimitLayer::new(MemoryStore::with_clock(10, ManualClock::default()), policy);
    let inner = Inner::default();
    let service = layer.layer(inner.clone());
    let requests: Vec<_> = (0..2_000)
        .map(|_| tokio::spawn(service.clone().oneshot(Request::new(()))))
        .collect();
    let mut admitted = 0;
    for request in requests {
        admitted += usize::from(request.await.unwrap().unwrap().status() == StatusCode::OK);
    }
    assert_eq!(admitted, 100);
    assert_eq!(inner.calls(), 100);
}
