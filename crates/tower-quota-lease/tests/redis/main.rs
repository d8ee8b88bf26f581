//! Tests leases from a real Redis.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod regions;

use std::time::Duration;

use tower_quota_core::{Charge, Decision, Key, Name, Operation, Quota, Store};
use tower_quota_dev::RedisServer;
use tower_quota_lease::Leased;
use tower_quota_redis::RedisStore;

/// A quota that never refills during a test.
const QUOTA: Quota = Quota::new(5_000, Duration::from_secs(300 * 86_400)).fixed_window();
/// A long deadline, because a loaded machine answers late and these tests measure no time.
const PATIENCE: Duration = Duration::from_secs(20);

async fn connect(server: &RedisServer) -> Leased<RedisStore> {
    Leased::new(
        RedisStore::options()
            .deadline(PATIENCE)
            .connect(&server.url())
            .await
            .unwrap(),
    )
}

async fn check(store: &Leased<RedisStore>) -> bool {
    let key = Key::number(Name::new("client"), 1);
    let charges = [Charge::new("limit", &QUOTA, &key)];
    let mut decision = Decision::default();
    if !store.check_at_once(&charges, &mut decision) {
        decision = store.check(&charges).await.unwrap();
    }
    decision.is_allowed()
}

/// Returns the used units in Redis.
async fn counted(store: &Leased<RedisStore>) -> u64 {
    let key = Key::number(Name::new("client"), 1);
    let peek = store
        .store()
        .apply(Operation::Peek, &[Charge::new("limit", &QUOTA, &key)])
        .await
        .unwrap();
    QUOTA.capacity() - peek.statuses()[0].remaining()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn instances_share_one_quota() {
    let server = RedisServer::start();
    let instances = [
        connect(&server).await,
        connect(&server).await,
        connect(&server).await,
    ];
    let tasks = instances.clone().map(|instance| {
        tokio::spawn(async move {
            let mut admitted = 0;
            for _ in 0..3_000 {
                admitted += u64::from(check(&instance).await);
                tokio::task::yield_now().await;
            }
            admitted
        })
    });
    let mut admitted = 0;
    for task in tasks {
        admitted += task.await.unwrap();
    }
    // Keep Redis reachable until all instances have returned their units.
    let observer = connect(&server).await;
    let mut lost = 0;
    for instance in instances {
        assert!(instance.close(PATIENCE).await);
        // On a busy machine, a call for a lease may take longer than the lease.
        lost += instance.stats().units_lost;
    }
    let counted = counted(&observer).await;
    assert!(admitted <= QUOTA.capacity(), "{admitted} admitted");
    assert!(
        (admitted..=admitted + lost).contains(&counted),
        "{counted} counted, {admitted} admitted, {lost} lost"
    );
}
