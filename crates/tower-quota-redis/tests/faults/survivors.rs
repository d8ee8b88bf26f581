//! Tests that a dead primary of a cluster does not affect the other nodes.

use std::num::NonZeroUsize;
use std::time::Duration;

use redis::{Client, Connection};
use tokio::task::JoinSet;
use tower_quota_core::{Charge, Key, Quota, Store};
use tower_quota_dev::{RedisCluster, RedisServer};
use tower_quota_redis::{RedisStore, RedisStoreError};

use crate::load::key;
use crate::rig::{DEADLINE, TEST_TIMEOUT, number_in, options, pause, until_answered, until_open};

const QUOTA: Quota = Quota::per_hour(1_000_000);
const SECONDS: usize = 4;
/// The number of keys, enough for all partitions.
const KEYS: usize = 512;

/// A node, with a connection from before the fault.
struct Watched {
    connection: Connection,
}

impl Watched {
    fn new(server: &RedisServer) -> Self {
        Self {
            connection: Client::open(server.url())
                .unwrap()
                .get_connection()
                .unwrap(),
        }
    }

    fn number(&mut self, start: &str) -> usize {
        let info: String = redis::cmd("INFO")
            .arg("everything")
            .query(&mut self.connection)
            .unwrap();
        number_in(&info, start)
    }

    fn connections(&mut self) -> usize {
        self.number("total_connections_received:")
    }

    fn calls(&mut self) -> usize {
        self.number("cmdstat_evalsha:calls=") + self.number("cmdstat_eval:calls=")
    }
}

/// The failure of a primary.
#[derive(Clone, Copy, Debug)]
enum PrimaryFailure {
    Killed,
    Silent,
}

/// Takes a primary and its replica away, so that no node takes over.
fn take_away(cluster: &mut RedisCluster, failure: PrimaryFailure) {
    for node in [3, 0] {
        match failure {
            PrimaryFailure::Killed => cluster.kill(node),
            PrimaryFailure::Silent => cluster.node(node).pause(),
        }
    }
}

async fn ask(store: RedisStore, first: usize) {
    for i in (first..).step_by(7) {
        let _ = store
            .check(&[Charge::new(
                "all",
                &QUOTA,
                &key(&format!("key {}", i % KEYS)),
            )])
            .await;
        pause(Duration::from_millis(1)).await;
    }
}

/// Finds a key on a node.
fn key_on(cluster: &RedisCluster, store: &RedisStore, node: usize) -> Key<'static> {
    let runtime = tokio::runtime::Handle::current();
    let found = (0..KEYS).map(|i| key(&format!("key {i}"))).find(|key| {
        let mut watched = Watched::new(cluster.node(node));
        let before = watched.calls();
        // Nothing has failed yet, but a busy machine may answer late.
        let answered = async {
            let charge = Charge::new("all", &QUOTA, key);
            while store.check(&[charge]).await.is_err() {}
        };
        tokio::task::block_in_place(|| runtime.block_on(answered));
        watched.calls() > before
    });
    found.unwrap()
}

async fn dials_of_survivors(failure: PrimaryFailure) {
    let mut cluster = RedisCluster::start();
    let store = options(DEADLINE).cluster(cluster.urls()).await.unwrap();
    until_answered(&store).await;
    let mut survivors: Vec<Watched> = [1, 2, 4, 5]
        .map(|node| Watched::new(cluster.node(node)))
        .into();
    let mut load = JoinSet::new();
    (0..16).for_each(|first| drop(load.spawn(ask(store.clone(), first))));
    pause(Duration::from_millis(200)).await;
    let before: Vec<usize> = survivors.iter_mut().map(Watched::connections).collect();
    take_away(&mut cluster, failure);
    pause(Duration::from_secs(SECONDS as u64)).await;
    let asked = survivors[0].number("cmdstat_cluster|slots:calls=")
        + survivors[1].number("cmdstat_cluster|slots:calls=");
    let pings = survivors[0].number("cmdstat_ping:calls=");
    println!(
        "the two other primaries were asked for slots {asked} times, and one for a ping {pings} times"
    );
    let made: Vec<usize> = survivors
        .iter_mut()
        .zip(before)
        .map(|(node, before)| node.connections() - before)
        .collect();
    load.shutdown().await;
    println!(
        "{failure:?}: {made:?} connections to the other nodes in {SECONDS} s: {:?}",
        store.stats()
    );
    assert!(made.iter().all(|&made| made <= 8), "{made:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dead_primary_causes_few_dials_elsewhere() {
    dials_of_survivors(PrimaryFailure::Killed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_primary_causes_few_dials_elsewhere() {
    dials_of_survivors(PrimaryFailure::Silent).await;
}

// The deadline is long, so that a decision behind the silent node's calls would fail on any
// machine.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_silent_partitions_delay_no_others() {
    let mut cluster = RedisCluster::start();
    let partitions = NonZeroUsize::new(240).unwrap();
    let store = options(TEST_TIMEOUT / 2)
        .partitions(partitions)
        .cluster(cluster.urls())
        .await
        .unwrap();
    until_answered(&store).await;
    let is_on_silent = |key: &Key<'_>| {
        matches!(
            cluster.owner(cluster.slot(&store.key_of(key))),
            None | Some(0)
        )
    };
    let (silent, others): (Vec<_>, Vec<_>) = (0..KEYS)
        .map(|i| key(&format!("key {i}")))
        .partition(is_on_silent);
    take_away(&mut cluster, PrimaryFailure::Silent);
    let (mut waiting, mut answers) = (JoinSet::new(), JoinSet::new());
    silent
        .iter()
        .for_each(|key| drop(waiting.spawn(store.check(&[Charge::new("all", &QUOTA, key)]))));
    pause(Duration::from_millis(20)).await;
    others
        .iter()
        .for_each(|key| drop(answers.spawn(store.check(&[Charge::new("all", &QUOTA, key)]))));
    while let Some(answer) = answers.join_next().await {
        assert!(answer.unwrap().unwrap().is_allowed());
    }
    assert!(
        waiting.len() > 60 && others.len() > 200,
        "{} and {} keys",
        waiting.len(),
        others.len()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failing_decisions_do_not_slow_survivors() {
    let mut cluster = RedisCluster::start();
    let store = options(DEADLINE).cluster(cluster.urls()).await.unwrap();
    until_answered(&store).await;
    let keys = [2, 1, 0].map(|node| key_on(&cluster, &store, node));
    let mut survivors = [1, 2].map(|node| Watched::new(cluster.node(node)));
    take_away(&mut cluster, PrimaryFailure::Killed);
    until_open(&store, &keys[2]).await;
    let before = survivors.each_mut().map(|node| node.calls());
    let charges: Vec<Charge<'_>> = keys
        .iter()
        .map(|key| Charge::new("all", &QUOTA, key))
        .collect();
    let (mut refused, mut failed) = (0, 0);
    while refused < 500 {
        match store.check(&charges).await.unwrap_err() {
            RedisStoreError::BreakerOpen { .. } => refused += 1,
            _ => failed += 1,
        }
        pause(Duration::from_millis(2)).await;
    }
    let calls = survivors.each_mut().map(|node| node.calls());
    println!(
        "{refused} decisions failed at once, {failed} when they tried; calls on the others: {before:?} {calls:?}"
    );
    assert!(failed > 0, "the server is tried again");
    assert_eq!(calls, before);
}
