//! Tests keys on several nodes of a cluster.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use tower_quota_core::{Charge, Key, Operation, Outcome, Quota, Store};
use tower_quota_dev::RedisCluster;
use tower_quota_redis::{RedisStore, RedisStoreError};

use crate::common::{calls, options, user};

const THREE: Quota = Quota::per_hour(3);
/// A window longer than any test.
const YEAR: Duration = Duration::from_secs(365 * 86_400);
const TEN: Quota = Quota::new(10, YEAR).fixed_window();
const FIFTY: Quota = Quota::new(50, YEAR).fixed_window();

async fn store_on(cluster: &RedisCluster) -> RedisStore {
    options().cluster(cluster.urls()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_and_global_limit_never_over_admit() {
    let cluster = RedisCluster::start();
    let store = Arc::new(store_on(&cluster).await);
    let clients: Vec<_> = (0..20)
        .map(|i| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let everyone = Key::EVERYONE;
                let key = user(&format!("client {i}"));
                let charges = [
                    Charge::new("everyone", &FIFTY, &everyone),
                    Charge::new("own", &TEN, &key),
                ];
                let mut admitted = 0;
                for _ in 0..12 {
                    let decision = store.check(&charges).await.unwrap();
                    let names: Vec<_> = decision
                        .statuses()
                        .iter()
                        .map(|status| status.name.as_str())
                        .collect();
                    assert_eq!(names, ["everyone", "own"], "in the order of the charges");
                    admitted += u64::from(decision.is_allowed());
                }
                let left =
                    store.check(&[charges[1].cost(0)]).await.unwrap().statuses()[0].remaining();
                assert_eq!(
                    left,
                    10 - admitted,
                    "units refused by the global limit were refunded"
                );
                admitted
            })
        })
        .collect();
    let mut admitted = 0;
    for client in clients {
        admitted += client.await.unwrap();
    }
    println!(
        "20 clients of 10 each asked for 240 under a common limit of 50: {admitted} were admitted"
    );
    assert!(admitted <= 50);
    // A single client gets all remaining units.
    let (everyone, key) = (Key::EVERYONE, user("late"));
    let charges = [
        Charge::new("everyone", &FIFTY, &everyone),
        Charge::new("own", &FIFTY, &key),
    ];
    while store.check(&charges).await.unwrap().is_allowed() {
        admitted += 1;
    }
    assert_eq!(admitted, 50);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operations_reach_every_partition() {
    let cluster = RedisCluster::start();
    let store = store_on(&cluster).await;
    let keys: Vec<Key<'_>> = (0..10).map(|i| user(&format!("user {i}"))).collect();
    let charges: Vec<Charge<'_>> = keys
        .iter()
        .map(|key| Charge::new("hour", &TEN, key))
        .collect();
    let left = |decision: &tower_quota_core::Decision| -> Vec<u64> {
        decision
            .statuses()
            .iter()
            .map(|status| status.remaining())
            .collect()
    };
    let mut decision = store.check(&charges).await.unwrap();
    assert_eq!(
        (decision.outcome(), left(&decision)),
        (Outcome::Allow, vec![9; 10])
    );
    let refund = decision.refund().unwrap();
    assert_eq!(
        left(&store.apply(refund, &charges).await.unwrap()),
        [10; 10]
    );
    assert_eq!(
        left(&store.apply(Operation::Charge, &charges).await.unwrap()),
        [9; 10]
    );
    assert_eq!(
        left(&store.apply(Operation::Reset, &charges).await.unwrap()),
        [10; 10]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_partition_decides_in_one_call() {
    let cluster = RedisCluster::start();
    let store = options()
        .partitions(NonZeroUsize::MIN)
        .cluster(cluster.urls())
        .await
        .unwrap();
    let keys: Vec<Key<'_>> = (0..10).map(|i| user(&format!("user {i}"))).collect();
    let charges: Vec<Charge<'_>> = keys
        .iter()
        .map(|key| Charge::new("hour", &TEN, key))
        .collect();
    assert!(store.check(&charges).await.unwrap().is_allowed());
    assert!(store.check(&charges).await.unwrap().is_allowed());
    let all: Vec<u64> = (0..3)
        .map(|node| calls(cluster.node(node), "evalsha"))
        .collect();
    assert_eq!(all.iter().filter(|&&calls| calls > 0).count(), 1, "{all:?}");
}

/// Moves a slot key by key, with clients at their limits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn moving_slot_admits_no_limited_client_again() {
    let cluster = RedisCluster::start();
    let store = options()
        .partitions(NonZeroUsize::MIN)
        .cluster(cluster.urls())
        .await
        .unwrap();
    let users: Vec<Key<'_>> = (0..25).map(|i| user(&format!("user {i}"))).collect();
    for key in &users {
        for _ in 0..3 {
            assert!(
                store
                    .check(&[Charge::new("hour", &THREE, key)])
                    .await
                    .unwrap()
                    .is_allowed()
            );
        }
    }
    let slot = cluster.slot(&store.key_of(&users[0]));
    // Move the slot there and back.
    for _ in 0..2 {
        let moving = cluster
            .begin_move(slot, (cluster.owner(slot).unwrap() + 1) % 3)
            .unwrap();
        let keys = moving.keys_left(100).unwrap();
        assert_eq!(keys.len(), users.len());
        let mut failed = 0;
        for key in keys {
            // This fails if the new owner has the key already.
            moving.carry(&[key]).unwrap();
            for key in &users {
                match store.check(&[Charge::new("hour", &THREE, key)]).await {
                    Ok(decision) => assert!(!decision.is_allowed()),
                    Err(error) => {
                        assert!(
                            matches!(error, RedisStoreError::Moving { .. }) && error.is_transient(),
                            "{error:?}"
                        );
                        failed += 1;
                    }
                }
            }
        }
        assert!(failed > 0, "a slot on its way cannot be decided on");
        assert!(
            moving.keys_left(100).unwrap().is_empty(),
            "nothing was written behind the keys that left"
        );
        moving.end();
        for key in &users {
            let decision = store
                .check(&[Charge::new("hour", &THREE, key)])
                .await
                .unwrap();
            assert!(!decision.is_allowed(), "what was used up has moved along");
        }
        cluster.settle();
    }
}
