//! Tests that a limiter keeps its holds in the store of a region.

use std::time::Duration;

use tower_quota_core::{Limiter, MemoryStore, Quota};
use tower_quota_lease::{RegionShares, Regional};
use tower_quota_testkit::ManualClock;

const TTL: Duration = Duration::from_secs(12);
const SECOND: Duration = Duration::from_secs(1);

/// Counts the held units of a client.
fn held_units(store: &MemoryStore) -> u64 {
    let all = Quota::concurrent(10_000).ttl(TTL);
    let Ok(decision) = Limiter::new(store.clone(), "holds", all)
        .peek("ann")
        .into_inner();
    10_000 - decision.statuses()[0].remaining()
}

async fn pass(clock: &ManualClock, time: Duration) {
    clock.advance(time);
    tokio::time::advance(time).await;
    for _ in 0..4 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn lost_hold_returns_to_store_that_admitted() {
    let clock = ManualClock::default();
    let floor = MemoryStore::with_clock(100, clock.clone());
    let pool = MemoryStore::with_clock(100, clock.clone());
    let shares = RegionShares::new([("eu", 20)]).unwrap();
    let store =
        Regional::with_clock(floor.clone(), pool.clone(), "eu", shares, clock.clone()).unwrap();
    let limiter = Limiter::new(store, "holds", Quota::concurrent(5).ttl(TTL));
    let holds = [
        limiter.hold("ann").await.unwrap(),
        limiter.hold("ann").await.unwrap(),
    ];
    tokio::task::yield_now().await;
    assert_eq!((held_units(&floor), held_units(&pool)), (1, 1));
    floor.clear();
    pool.clear();
    for _ in 0..30 {
        pass(&clock, SECOND).await;
    }
    assert_eq!((held_units(&floor), held_units(&pool)), (1, 1));
    drop(holds);
    pass(&clock, Duration::ZERO).await;
    assert_eq!((held_units(&floor), held_units(&pool)), (0, 0));
}
