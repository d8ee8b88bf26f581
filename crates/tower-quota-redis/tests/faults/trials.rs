//! Tests how often the store tries to reach a server that is away.

use std::io::Read;
use std::net::TcpStream;
use std::num::NonZeroU32;
use std::time::Duration;

use tokio::task::JoinSet;
use tower_quota_core::{Charge, Clock, Key, MonotonicClock, Quota, Store, Timestamp};
use tower_quota_dev::{Fault, FaultProxy, RedisCluster, RedisServer};
use tower_quota_redis::RedisStore;

use crate::load::{CAP, key};
use crate::rig::{
    DEADLINE, FAULT_TIME, TEST_TIMEOUT, Trial, number_in, options, pause, store_at, until,
    until_answered, until_open,
};
use crate::server_count::CountCheck;

/// The shortest time between the starts of two attempts to connect, after the first few.
const LEAST_PAUSE: Duration = Duration::from_millis(150);
/// The number of attempts that together take longer than a call, since each follows a pause.
const SEVERAL: usize = 4;
const PARTITIONS: usize = 12;
/// The number of keys, enough for all partitions.
const KEYS: usize = 16 * PARTITIONS;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dead_server_is_dialled_rarely() {
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    let store = store_at(&proxy.url(), DEADLINE).await;
    let trial = Trial::start(store.clone(), DEADLINE).await;
    proxy.inflict(Fault::Refuse);
    until_open(&store, &key("late")).await;
    drop(store);
    let attempts = Attempts::at([&proxy]).await;
    pause(FAULT_TIME).await;
    attempts.are_few("connections in a second with an open breaker");
    let outcome = trial
        .end("tried while away", CAP, CountCheck::Skipped, None)
        .await;
    // Drop the last clone, and wait until calls in flight end.
    pause(FAULT_TIME).await;
    let before = accepted(&proxy);
    pause(FAULT_TIME).await;
    assert_eq!(proxy.connections(), before, "a dropped store dials nothing");
    outcome
        .assert_server_count(CountCheck::Exact, &store_at(&server.url(), DEADLINE).await)
        .await;
}

// Silence all nodes, so that no replica is promoted. The nodes count the calls when they resume.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_cluster_is_tried_rarely() {
    let cluster = RedisCluster::start();
    let store = of_cluster(&cluster.urls()).await;
    let clock = MonotonicClock::new();
    let began = clock.now();
    for node in 0..6 {
        cluster.node(node).command("CONFIG RESETSTAT").unwrap();
        cluster.node(node).pause();
    }
    until_all_open(&store).await;
    pause(FAULT_TIME).await;
    let resumed = clock.now();
    (0..6).for_each(|node| cluster.node(node).resume());
    until_answered(&store).await;
    drop(store);
    let most = most_within(clock.now().since(began));
    let most_of_each_since = most_within(clock.now().since(resumed));
    let statistics: Vec<String> = (0..6)
        .map(|i| cluster.node(i).command("INFO everything").unwrap())
        .collect();
    let trials: usize = statistics
        .iter()
        .map(|text| number_in(text, "cmdstat_mget:calls="))
        .sum();
    let connections = statistics
        .iter()
        .map(|text| number_in(text, "total_connections_received:"))
        .max()
        .unwrap_or_default();
    println!(
        "{trials} trials and calls, {connections} connections to a node; one series of attempts: {most}"
    );
    // The script uses the command too. Each partition has made up to three calls before its breaker
    // opened, with about two commands each. After the fault, each partition sends its own trial.
    assert!(
        trials <= most + (8 + most_of_each_since) * PARTITIONS,
        "{trials} probes"
    );
    // An attempt first asks a node for an answer, and then the client connects. The rest are
    // repairs by the client until the link drops it, a replica without its primary, and this test.
    assert!(connections <= 2 * most + 8, "{connections} connections");
}

// All nodes are dead, so each attempt to connect fails at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dead_cluster_is_dialled_rarely() {
    let mut cluster = RedisCluster::start();
    let store = of_cluster(&cluster.urls()).await;
    let mut load = JoinSet::new();
    (0..16).for_each(|first| drop(load.spawn(ask_about_many(store.clone(), first))));
    // The remaining nodes redirect calls, so the client asks them for the slots. If the last node
    // dies meanwhile, the client repeats the request without a pause.
    for node in [0, 3, 1, 2, 4, 5] {
        cluster.kill(node);
        pause(Duration::from_millis(3)).await;
    }
    until_all_open(&store).await;
    let proxies: Vec<FaultProxy> = (0..6)
        .map(|node| FaultProxy::in_place_of(cluster.node(node).port()))
        .collect();
    // The repetition ends when many calls in a row have failed and the link drops the client.
    pause(FAULT_TIME).await;
    let attempts = Attempts::at(&proxies).await;
    pause(FAULT_TIME).await;
    attempts.are_few("attempts a node to connect to a dead cluster in a second");
    load.shutdown().await;
}

// The client repeats its request for the slots without a pause, and no call tells that it is dead.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quiet_store_stops_dialling_dead_cluster() {
    let mut cluster = RedisCluster::start();
    let store = of_cluster(&cluster.urls()).await;
    let mut load = JoinSet::new();
    (0..16).for_each(|first| drop(load.spawn(ask_about_many(store.clone(), first))));
    for node in [0, 3, 1, 2, 4, 5] {
        cluster.kill(node);
        pause(Duration::from_millis(3)).await;
    }
    pause(2 * DEADLINE).await;
    load.shutdown().await;
    let proxies: Vec<FaultProxy> = (0..6)
        .map(|node| FaultProxy::in_place_of(cluster.node(node).port()))
        .collect();
    let dials = || proxies.iter().map(FaultProxy::connections).sum::<usize>();
    let clock = MonotonicClock::new();
    let began = clock.now();
    loop {
        let before = dials();
        pause(FAULT_TIME).await;
        let made = dials() - before;
        println!("{made} dials in a second without calls");
        if made == 0 {
            break;
        }
        assert!(clock.now().since(began) < TEST_TIMEOUT, "{made} dials");
    }
    drop(store);
}

/// Sends requests about keys of all partitions, without a pause.
async fn ask_about_many(store: RedisStore, first: usize) {
    let quota = Quota::per_hour(1);
    for i in (first..).step_by(7) {
        let _ = store
            .check(&[Charge::new("all", &quota, &nth_key(i % KEYS))])
            .await;
        // Yield, because an open breaker answers at once.
        tokio::task::yield_now().await;
    }
}

fn nth_key(i: usize) -> Key<'static> {
    key(&format!("key {i}"))
}

/// Counts attempts to connect to nodes that hang up, from an instant on.
struct Attempts<'a> {
    clock: MonotonicClock,
    began: Timestamp,
    /// The proxies, with the connections before the start.
    proxies: Vec<(&'a FaultProxy, usize)>,
}

impl<'a> Attempts<'a> {
    /// Begins to count once no call is in flight. All breakers must be open.
    async fn at(proxies: impl IntoIterator<Item = &'a FaultProxy>) -> Self {
        let proxies: Vec<&FaultProxy> = proxies.into_iter().collect();
        // Wait for several attempts, after which all work of the last calls has ended.
        for proxy in &proxies {
            let early = proxy.connections();
            until("several attempts have been made", || {
                proxy.connections() >= early + SEVERAL
            })
            .await;
        }
        let clock = MonotonicClock::new();
        let began = clock.now();
        let proxies = proxies
            .into_iter()
            .map(|proxy| (proxy, accepted(proxy)))
            .collect();
        Self {
            clock,
            began,
            proxies,
        }
    }

    /// Asserts that only the link makes attempts, with at least a pause in between.
    ///
    /// The count may include an attempt from before. An attempt is one connection to each node,
    /// because the client makes more only after an answer.
    fn are_few(self, what: &str) {
        let made = self
            .proxies
            .iter()
            .map(|(proxy, before)| proxy.connections() - before)
            .max()
            .unwrap();
        let most = most_within(self.clock.now().since(self.began)) + 1;
        println!("{made} of at most {most} {what}");
        assert!(made <= most, "{made} of at most {most} {what}");
    }
}

/// Returns the number of connections to a proxy that hangs up, including pending connections.
///
/// The proxy accepts in order. When it hangs up on a new connection, it has counted all earlier
/// ones.
fn accepted(proxy: &FaultProxy) -> usize {
    let mut last = TcpStream::connect(("127.0.0.1", proxy.port())).unwrap();
    last.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    assert_eq!(last.read(&mut [0]).unwrap(), 0);
    proxy.connections()
}

async fn of_cluster(urls: &[String]) -> RedisStore {
    let store = options(DEADLINE)
        .breaker(NonZeroU32::MIN)
        .cluster(urls)
        .await
        .unwrap();
    until_answered(&store).await;
    store
}

/// Waits until every partition's breaker is open.
async fn until_all_open(store: &RedisStore) {
    let mut waiting = JoinSet::new();
    for i in 0..KEYS {
        let store = store.clone();
        waiting.spawn(async move { until_open(&store, &nth_key(i)).await });
    }
    // This fails if a task has panicked.
    waiting.join_all().await;
}

/// Returns the maximum number of attempts in a span, which are one at once and one after each
/// pause.
fn most_within(span: Duration) -> usize {
    usize::try_from(span.as_millis() / LEAST_PAUSE.as_millis()).unwrap() + 1
}
