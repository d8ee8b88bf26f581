//! The number of store calls and their charges.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Method, Request, StatusCode};
use tower::{Layer, ServiceExt};
use tower_quota::{MissingKey, RateLimitLayer, key};

use crate::fixture::{Inner, StoreControl, slow_store};
use crate::shared::{
    answer_of, answer_to, per_hour, per_minute, policy_of, stopped_layer, stopped_store,
};

#[tokio::test]
async fn all_limits_share_one_store_call() {
    let store = slow_store();
    let policy = policy_of(per_minute("a", 9))
        .limit(per_minute("b", 9).by(key::method()))
        .limit(
            per_minute("c", 9)
                .by(key::header("k"))
                .when_missing(MissingKey::ShareOneCounter),
        );
    let service = RateLimitLayer::new(store.clone(), policy).layer(Inner::default());
    answer_of(&service).await;
    assert_eq!(store.charge_counts(), [3]);
}

#[tokio::test]
async fn request_without_limits_skips_the_store() {
    let store = slow_store();
    let policy = policy_of(per_minute("posts", 9).when(|head| head.method() == Method::POST))
        .limit(
            per_minute("keyed", 9)
                .by(key::header("k"))
                .when_missing(MissingKey::Skip),
        );
    let service = RateLimitLayer::new(store.clone(), policy).layer(Inner::default());
    let response = answer_of(&service).await;
    assert_eq!(response.status(), 200);
    assert!(store.charge_counts().is_empty());
    answer_to(&service, Request::post("/").body(()).unwrap()).await;
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
    let policy = policy_of(per_minute("a", 9).by(extractor.clone()))
        .limit(per_minute("b", 9).by(extractor))
        .limit(
            per_minute("not now", 9)
                .by(key::from_fn("x", |_| -> Option<String> {
                    panic!("a limit that does not apply reads nothing")
                }))
                .when(|_| false),
        );
    let store = stopped_store();
    let service = RateLimitLayer::new(store.clone(), policy).layer(Inner::default());
    answer_of(&service).await;
    assert_eq!(reads.load(Ordering::Relaxed), 1);
    assert_eq!(store.len(), 1, "one entry with both its limits");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_requests_get_exactly_the_quota() {
    let policy = policy_of(per_hour("hundred", 100));
    let layer = stopped_layer(policy);
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
