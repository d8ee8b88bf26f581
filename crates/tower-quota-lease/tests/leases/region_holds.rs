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

fn share_of_eu(percent: u32) -> RegionShares {
    RegionShares::new([("eu", percent)]).unwrap()
}

/// Loses two holds, of the floor and of the pool, and returns where they are counted afterwards.
async fn after_loss(new_percent: u32) -> (u64, u64) {
    let clock = ManualClock::default();
    let stores = || MemoryStore::with_clock(100, clock.clone());
    let (floor, pool) = (stores(), stores());
    let (local, home, shares) = (floor.clone(), pool.clone(), share_of_eu(20));
    let store = Regional::with_clock(local, home, "eu", shares, clock.clone()).unwrap();
    let limiter = Limiter::new(store.clone(), "holds", Quota::concurrent(5).ttl(TTL));
    let of_floor = limiter.hold("ann").await.unwrap();
    // The clocks of two stores rarely give two holds the same instant.
    clock.advance(Duration::from_millis(1));
    let holds = [of_floor, limiter.hold("ann").await.unwrap()];
    tokio::task::yield_now().await;
    assert_eq!((held_units(&floor), held_units(&pool)), (1, 1));
    store.set_shares(share_of_eu(new_percent)).unwrap();
    floor.clear();
    pool.clear();
    for _ in 0..30 {
        pass(&clock, SECOND).await;
    }
    let counted = (held_units(&floor), held_units(&pool));
    drop(holds);
    pass(&clock, Duration::ZERO).await;
    assert_eq!((held_units(&floor), held_units(&pool)), (0, 0));
    counted
}

#[tokio::test(start_paused = true)]
async fn lost_hold_returns_to_store_that_admitted() {
    assert_eq!(after_loss(20).await, (1, 1));
}

#[tokio::test(start_paused = true)]
async fn lost_hold_of_former_floor_returns_to_pool() {
    // Ten percent of five units are no unit.
    assert_eq!(after_loss(10).await, (0, 2));
}
