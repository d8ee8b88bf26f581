//! How often a server that is away is asked for a sign of life.

use std::num::NonZeroU32;
use std::time::Duration;

use tokio::task::JoinSet;
use tollgate_core::{Clock, MonotonicClock};
use tollgate_redis::RedisStore;
use tollgate_testkit::{Fault, FaultProxy, RedisCluster, RedisServer};

use crate::books::Books;
use crate::load::{CAP, key};
use crate::rig::{A_WHILE, DEADLINE, Trial, alone, options, pause, store_at, until_answered, until_open};

/// The shortest time between two attempts to connect, and between two probes of a partition.
const LEAST_PAUSE: Duration = Duration::from_millis(75);
const PARTITIONS: usize = 64;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_server_are_few_and_end_with_the_store() {
    let _alone = alone().await;
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    let store = store_at(&proxy.url(), DEADLINE).await;
    let trial = Trial::start(store.clone(), DEADLINE).await;
    proxy.inflict(Fault::Refuse);
    until_open(&store, &key("late")).await;
    drop(store);
    let (began, before) = (trial.now(), proxy.connections());
    pause(A_WHILE).await;
    let probes = proxy.connections() - before;
    let most = most_within(trial.now().since(began));
    println!("{probes} connections in a second with an open breaker");
    assert!((1..=most).contains(&probes), "{probes} of {most}");
    let outcome = trial.end("probed while away", CAP, Books::Gone, None).await;
    // The last clone is gone. What was under way ends.
    pause(A_WHILE).await;
    let before = proxy.connections();
    pause(A_WHILE).await;
    assert_eq!(proxy.connections(), before, "somebody probes for nobody");
    outcome.is_borne_out(Books::Kept, &store_at(&server.url(), DEADLINE).await).await;
}

/// All nodes fall silent, so that none is promoted. What they are sent meanwhile they take note of when they go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_silent_cluster_are_no_herd() {
    let _alone = alone().await;
    let cluster = RedisCluster::start();
    let store = of_cluster(&cluster.urls()).await;
    let clock = MonotonicClock::new();
    let began = clock.now();
    for node in 0..6 {
        cluster.node(node).command("CONFIG RESETSTAT").unwrap();
        cluster.node(node).pause();
    }
    until_all_open(&store).await;
    pause(A_WHILE).await;
    (0..6).for_each(|node| cluster.node(node).resume());
    until_answered(&store).await;
    drop(store);
    let most = most_within(clock.now().since(began));
    let statistics: Vec<String> = (0..6).map(|i| cluster.node(i).command("INFO everything").unwrap()).collect();
    let probes: usize = statistics.iter().map(|text| number_after(text, "cmdstat_hmget:calls=")).sum();
    let connections =
        statistics.iter().map(|text| number_after(text, "total_connections_received:")).max().unwrap_or_default();
    println!("{probes} probes and calls, {connections} connections to a node: {most} are what one partition may have");
    // Calls of the script, by which each partition has noticed, use the command too. One that attempts to connect may ask
    // a node for a sign of life first, and that is a connection of its own.
    assert!(probes <= most + 8 * PARTITIONS, "{probes} probes");
    assert!(connections <= 2 * most + 8, "{connections} connections");
}

/// Nobody is there any more, so that each attempt to connect fails at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_dead_cluster_are_no_herd() {
    let _alone = alone().await;
    let mut cluster = RedisCluster::start();
    let proxies: Vec<FaultProxy> = (0..3).map(|node| FaultProxy::to(cluster.node(node).port())).collect();
    let urls: Vec<String> = proxies.iter().map(FaultProxy::url).collect();
    let store = of_cluster(&urls).await;
    (0..6).for_each(|node| cluster.kill(node));
    until_all_open(&store).await;
    let clock = MonotonicClock::new();
    let (began, before) = (clock.now(), proxies.iter().map(FaultProxy::connections).max().unwrap());
    pause(A_WHILE).await;
    let attempts = proxies.iter().map(FaultProxy::connections).max().unwrap() - before;
    // A probe that goes out has the client connect too.
    let most = 2 * most_within(clock.now().since(began));
    println!("{attempts} attempts to connect to a dead cluster in a second");
    assert!((1..=most).contains(&attempts), "{attempts} of {most}");
}

async fn of_cluster(urls: &[String]) -> RedisStore {
    let store = options(DEADLINE).breaker(NonZeroU32::MIN).cluster(urls).await.unwrap();
    until_answered(&store).await;
    store
}

/// Waits until every partition's breaker is open.
async fn until_all_open(store: &RedisStore) {
    let mut subjects = JoinSet::new();
    // So many that each partition has some.
    for i in 0..16 * PARTITIONS {
        let store = store.clone();
        subjects.spawn(async move { until_open(&store, &key(&format!("subject {i}"))).await });
    }
    // Fails if one of them has.
    subjects.join_all().await;
}

/// One at once, and one after each pause.
fn most_within(span: Duration) -> usize {
    usize::try_from(span.as_millis() / LEAST_PAUSE.as_millis()).unwrap() + 1
}

fn number_after(statistics: &str, start: &str) -> usize {
    let Some(rest) = statistics.lines().find_map(|line| line.strip_prefix(start)) else { return 0 };
    rest.split(',').next().unwrap().trim().parse().unwrap()
}
