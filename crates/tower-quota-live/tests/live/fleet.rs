//! Tests several instances on one Redis.

use std::sync::Arc;
use std::time::Duration;

use tower_quota::MemoryStore;
use tower_quota_dev::RedisServer;
use tower_quota_live::{LiveOptions, RuleStore};

use crate::fixture::{Instance, broken, eventually, new, now, redis_rules};

/// The longest time until a change is active on all instances.
const PROMISE: Duration = Duration::from_secs(2);

async fn fleet(server: &RedisServer) -> Vec<Instance> {
    let mut fleet = Vec::new();
    for _ in 0..5 {
        let redis = Arc::new(redis_rules(server, "fleet"));
        fleet.push(Instance::counting(MemoryStore::new(), redis, LiveOptions::new()).await);
    }
    fleet
}

async fn until_all_have(fleet: &[Instance], number: u64) {
    for instance in fleet {
        instance.until_in_force(number).await;
    }
}

#[tokio::test]
async fn bad_document_stays_out_everywhere() {
    let server = RedisServer::start();
    let fleet = fleet(&server).await;
    fleet[0].put(new(5)).await;
    until_all_have(&fleet, 1).await;
    let careless = redis_rules(&server, "fleet");
    careless.put(None, broken()).await.unwrap();
    for instance in &fleet {
        eventually("it is rejected", async || {
            instance.live.state().reloads.rejected == 1
        })
        .await;
        assert_eq!(
            (instance.number(), instance.limits("ann").await),
            (1, vec![5, 10])
        );
    }
    fleet[3].live.rollback(None, 1, "bob").await.unwrap();
    until_all_have(&fleet, 3).await;
    for instance in &fleet {
        eventually("all is well", async || instance.live.state().is_healthy()).await;
    }
}

#[tokio::test]
async fn killed_redis_changes_no_decision() {
    let mut server = RedisServer::start();
    let fleet = fleet(&server).await;
    fleet[0].put(new(5)).await;
    fleet[0].put(new(6)).await;
    until_all_have(&fleet, 2).await;
    for _ in 0..3 {
        server.kill();
        for instance in &fleet {
            eventually("it is noticed", async || {
                !instance.live.state().is_reachable
            })
            .await;
            assert_eq!(instance.limits("ann").await, [6, 12]);
        }
        server.start_again();
        let restarted = now();
        for instance in &fleet {
            eventually("it has recovered", async || {
                instance.live.state().is_healthy()
            })
            .await;
        }
        let put = fleet[1]
            .live
            .put(Some(fleet[1].number()), new(6))
            .await
            .unwrap();
        until_all_have(&fleet, put.number).await;
        let took = restarted.elapsed();
        assert!(took < 2 * PROMISE, "{took:?} after the restart");
    }
    // The instances restored the document on the empty server, so the numbers kept rising.
    assert_eq!(fleet[2].number(), 5);
}
