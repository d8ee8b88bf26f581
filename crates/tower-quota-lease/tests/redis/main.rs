//! Instances that lease from a real Redis.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod regions;

use std::time::Duration;

use tower_quota_core::{Charge, Decision, Key, Name, Operation, Quota, Store};
use tower_quota_lease::Leased;
use tower_quota_redis::RedisStore;
use tower_quota_testkit::RedisServer;

/// Nothing is refilled within the test.
const QUOTA: Quota = Quota::new(5_000, Duration::from_secs(300 * 86_400)).fixed_window();
/// A machine under load answers late, and these tests measure no time.
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

/// Returns the units that Redis has counted.
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
    // Redis stays reachable until all have returned what they hold.
    let observer = connect(&server).await;
    let mut lost = 0;
    for instance in instances {
        assert!(instance.close(PATIENCE).await);
        // A call for a lease that took longer than the lease, on a busy machine.
        lost += instance.stats().units_lost;
    }
    let counted = counted(&observer).await;
    assert!(admitted <= QUOTA.capacity(), "{admitted} admitted");
    assert!(
        (admitted..=admitted + lost).contains(&counted),
        "{counted} counted, {admitted} admitted, {lost} lost"
    );
}
