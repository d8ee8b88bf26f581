//! Tests faults of clusters and of primaries under sentinels.

use std::collections::BTreeSet;
use std::time::Duration;

use tower_quota_dev::{RedisCluster, RedisSentinel};

use crate::load::CAP;
use crate::rig::{DEADLINE, FAULT_TIME, TEST_TIMEOUT, Trial, options, pause};
use crate::server_count::CountCheck;

async fn in_cluster(cluster: &RedisCluster, deadline: Duration) -> Trial {
    // The store finds the other nodes through the given nodes.
    let store = options(deadline)
        .cluster(&cluster.urls()[..4])
        .await
        .unwrap();
    Trial::start(store, deadline).await
}

async fn under_sentinels(group: &RedisSentinel) -> Trial {
    let store = options(DEADLINE)
        .sentinel(group.urls(), RedisSentinel::MASTER_NAME)
        .await
        .unwrap();
    Trial::start(store, DEADLINE).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cluster_recovers_from_a_killed_primary() {
    let mut cluster = RedisCluster::start();
    let trial = in_cluster(&cluster, DEADLINE).await;
    // Fail the nodes one by one, so that the owners of the keys under load are among them.
    let mut recovery = Duration::ZERO;
    for primary in 0..3 {
        let slot = first_slot(&cluster, primary);
        cluster.kill(primary);
        cluster.wait_for_promotion(slot, primary);
        recovery = recovery.max(trial.recovery_of_all(trial.now()).await);
        cluster.start_again(primary);
        pause(FAULT_TIME).await;
    }
    // Each new primary may lack the last charges of the old one, so a few more requests are
    // admitted.
    trial
        .end(
            "cluster: each primary killed in turn",
            2 * CAP,
            CountCheck::MayLack,
            Some(recovery),
        )
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cluster_recovers_from_a_silent_primary() {
    let cluster = RedisCluster::start();
    let trial = in_cluster(&cluster, DEADLINE).await;
    let mut recovery = Duration::ZERO;
    for primary in 0..3 {
        let slot = first_slot(&cluster, primary);
        cluster.node(primary).pause();
        cluster.wait_for_promotion(slot, primary);
        recovery = recovery.max(trial.recovery_of_all(trial.now()).await);
        cluster.node(primary).resume();
        pause(FAULT_TIME).await;
    }
    trial
        .end(
            "cluster: each primary stopped in turn",
            2 * CAP,
            CountCheck::MayLack,
            Some(recovery),
        )
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn moved_slots_are_charged_once() {
    let cluster = RedisCluster::start();
    let trial = in_cluster(&cluster, TEST_TIMEOUT).await;
    let slots: BTreeSet<u16> = trial
        .names()
        .iter()
        .map(|name| cluster.slot(name))
        .collect();
    let slots: Vec<(u16, usize)> = slots
        .into_iter()
        .map(|slot| (slot, cluster.owner(slot).unwrap()))
        .collect();
    assert_eq!(slots.len(), 12, "one for each partition");
    for from in 0..3 {
        for (slot, _) in slots.iter().filter(|(_, owner)| *owner == from) {
            cluster.move_slot(*slot, (from + 1) % 3);
        }
        cluster.settle();
    }
    let recovery = trial.recovery_of_all(trial.now()).await;
    let moved = slots
        .iter()
        .filter(|(slot, owner)| cluster.owner(*slot) == Some((owner + 1) % 3))
        .count();
    assert_eq!(moved, slots.len());
    let outcome = trial
        .end(
            "cluster: all slots in use moved",
            CAP,
            CountCheck::Exact,
            Some(recovery),
        )
        .await;
    assert_eq!(outcome.unsure, 0, "nothing is late or lost: {outcome:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sentinels_replace_a_killed_primary() {
    let mut group = RedisSentinel::start();
    let trial = under_sentinels(&group).await;
    group.kill(0);
    group.wait_for_promotion(1);
    let recovery = trial.recovery(trial.now()).await;
    trial
        .end(
            "sentinel: primary killed",
            2 * CAP,
            CountCheck::MayLack,
            Some(recovery),
        )
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sentinels_replace_a_silent_primary() {
    let group = RedisSentinel::start();
    let trial = under_sentinels(&group).await;
    group.server(0).pause();
    group.wait_for_promotion(1);
    let recovery = trial.recovery(trial.now()).await;
    group.server(0).resume();
    pause(FAULT_TIME).await;
    trial
        .end(
            "sentinel: primary stopped, and back as a replica",
            2 * CAP,
            CountCheck::MayLack,
            Some(recovery),
        )
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exchanged_roles_are_followed() {
    let group = RedisSentinel::start();
    let trial = under_sentinels(&group).await;
    group.fail_over();
    group.wait_for_promotion(1);
    let recovery = trial.recovery(trial.now()).await;
    trial
        .end(
            "sentinel: roles exchanged",
            2 * CAP,
            CountCheck::MayLack,
            Some(recovery),
        )
        .await;
}

/// Returns a slot that a primary owns from the start.
fn first_slot(cluster: &RedisCluster, primary: usize) -> u16 {
    (0..=u16::MAX)
        .step_by(500)
        .find(|&slot| cluster.owner(slot) == Some(primary))
        .unwrap()
}
