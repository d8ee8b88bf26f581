//! The layer on a store that takes leases.

use http::Request;
use tower::{Layer, ServiceExt};
use tower_quota::{Leased, Limit, MemoryStore, Policy, Quota, RateLimitLayer};

use crate::fixture::Inner;

/// Sends requests of one client, and returns how many were decided from leases.
async fn decided_by_lease(limit: Limit) -> u64 {
    let store = Leased::new(MemoryStore::new());
    let layer = RateLimitLayer::new(store.clone(), Policy::new().limit(limit));
    for _ in 0..200 {
        let response = layer.layer(Inner::default()).oneshot(Request::new(())).await.unwrap();
        assert_eq!(response.status(), 200);
        // Leases are fetched in tasks of their own.
        tokio::task::yield_now().await;
    }
    store.stats().by_lease
}

#[tokio::test]
async fn hot_limit_is_leased_unless_exact() {
    let limit = || Limit::new("everyone", Quota::per_hour(100_000));
    assert!(decided_by_lease(limit()).await > 0);
    assert_eq!(decided_by_lease(limit().exact()).await, 0);
}
