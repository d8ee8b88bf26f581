//! The layer on a store that takes leases.

use http::Request;
use tower::{Layer, ServiceExt};
use tower_quota::{
    HeaderStyle, Leased, Limit, MemoryStore, OnStoreFailure, Penalty, Quota, RateLimitLayer,
    Regional, Reset, lease::RegionShares, store::Timestamp,
};
use tower_quota_testkit::ManualClock;

use crate::fixture::Inner;
use crate::shared::{answer_of, per_hour, per_second, policy_of};

/// Sends requests of one client, and returns how many were decided from leases.
async fn decided_by_lease(limit: Limit) -> u64 {
    let store = Leased::new(MemoryStore::new());
    let layer = RateLimitLayer::new(store.clone(), policy_of(limit));
    for _ in 0..200 {
        let response = layer
            .layer(Inner::default())
            .oneshot(Request::new(()))
            .await
            .unwrap();
        assert_eq!(response.status(), 200);
        // Leases are fetched in tasks of their own.
        tokio::task::yield_now().await;
    }
    store.stats().by_lease
}

#[tokio::test]
async fn hot_limit_is_leased_unless_exact() {
    let limit = || per_hour("everyone", 100_000);
    assert!(decided_by_lease(limit()).await > 0);
    assert_eq!(decided_by_lease(limit().exact()).await, 0);
    let fails_closed = limit().on_store_failure(OnStoreFailure::Refuse);
    assert!(decided_by_lease(fails_closed).await > 0);
}

#[tokio::test]
async fn grant_counts_as_its_limit_does() {
    let quota = Quota::per_hour(1_000);
    let limit = || Limit::new("everyone", quota).cost(400);
    let penalty = Penalty::after(3);
    for limit in [
        limit(),
        limit().exact(),
        limit().penalty(penalty),
        limit().count_refusals(),
    ] {
        let layer = RateLimitLayer::new(Leased::new(MemoryStore::new()), policy_of(limit));
        let response = layer
            .layer(Inner::default())
            .oneshot(Request::new(()))
            .await
            .unwrap();
        assert_eq!(response.status(), 200);
        let before = layer
            .handle()
            .peek("everyone", "")
            .await
            .unwrap()
            .remaining();
        let after = layer
            .handle()
            .grant("everyone", "", 300)
            .await
            .unwrap()
            .remaining();
        assert_eq!(after, before + 300);
    }
}

#[tokio::test]
async fn pool_of_regions_resets_at_epoch_second() {
    let clock = ManualClock::at(Timestamp::from_micros(1_700_000_000_000_000));
    let [local, home] = [(); 2].map(|()| MemoryStore::with_clock(100, clock.clone()));
    let shares = RegionShares::new([("eu", 10)]).unwrap();
    let store = Regional::with_clock(local, home, "eu", shares, clock).unwrap();
    let policy = policy_of(per_second("everyone", 10));
    let layer = RateLimitLayer::new(store, policy).headers([HeaderStyle::XRateLimit(Reset::Epoch)]);
    // The floor has one unit. The pool decides the second request.
    for _ in 0..2 {
        let service = layer.layer(Inner::default());
        let response = answer_of(&service).await;
        let reset = response.headers()["x-ratelimit-reset"].to_str().unwrap();
        assert_eq!(reset, "1700000001");
    }
}
