//! Tests the number of calls to the store, with the refusal cache and with leases.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use tokio::task::JoinSet;
use tower_quota_core::{Charge, Quota, RefusalCache, Store};
use tower_quota_dev::simulation::{self, Network, VirtualClock, run};
use tower_quota_lease::{LeaseOptions, LeaseStats, Leased};

use crate::server::Server;
use crate::{LIMIT, QUOTA, check, instance_over, key, make_hot, pass};

/// The wrappers between an instance and the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stack {
    Cache,
    Leases,
    Both,
}

const SPAN: Duration = Duration::from_secs(4);

/// Returns the share of requests that call the store, in percent.
fn calls(stack: Stack, units: u64, instances: u64, load: u64) -> u64 {
    run(async {
        let clock = VirtualClock::start();
        let server = Arc::new(Server::new(clock.clone()));
        let mut tasks = Vec::new();
        for number in 0..instances {
            let network = Network::new(Arc::clone(&server), number)
                .delays(Duration::from_micros(100)..Duration::from_millis(1));
            let gap = instances * 1_000_000 / (units * load);
            let (calls, clock) = (network.clone(), clock.clone());
            let leased = |store| Leased::with_clock(store, LeaseOptions::default(), clock.clone());
            let task = match stack {
                Stack::Cache => tokio::spawn(ask(
                    RefusalCache::with_clock(network, clock),
                    units,
                    gap,
                    number,
                )),
                Stack::Leases => tokio::spawn(ask(leased(network), units, gap, number)),
                Stack::Both => tokio::spawn(ask(
                    RefusalCache::with_clock(leased(network), clock.clone()),
                    units,
                    gap,
                    number,
                )),
            };
            tasks.push((task, calls));
        }
        let (mut requests, mut sum) = (0, 0);
        for (task, calls) in tasks {
            requests += task.await.unwrap();
            sum += calls.calls();
        }
        sum * 100 / requests
    })
}

/// Sends requests at random times without waiting for answers. Returns the number of requests.
async fn ask(store: impl Store, units: u64, gap: u64, seed: u64) -> u64 {
    let store = Arc::new(store);
    let mut random = Rng::with_seed(seed);
    let quota = Quota::per_second(units);
    let (mut at, mut passed, mut requests) = (Duration::ZERO, Duration::ZERO, 0);
    while at < SPAN {
        at += Duration::from_micros(random.u64(0..=2 * gap));
        if at >= passed + Duration::from_millis(1) {
            let whole = Duration::from_millis(u64::try_from((at - passed).as_millis()).unwrap());
            simulation::pass(whole).await;
            passed += whole;
        }
        requests += 1;
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            check(&store, &[Charge::new(LIMIT, &quota, &key(0))]).await;
        });
    }
    requests
}

/// Sends requests to an instance for some windows of a second, without waiting for answers.
fn leased_load(quota: Quota, per_milli: u32, delays: Range<Duration>) -> LeaseStats {
    run(async {
        let (_, store) = instance_over(delays);
        for _ in 0..4_000 {
            for _ in 0..per_milli {
                let store = store.clone();
                tokio::spawn(async move {
                    check(&store, &[Charge::new(LIMIT, &quota, &key(0))]).await;
                });
            }
            pass(1).await;
        }
        store.stats()
    })
}

/// Checks that requests wait for the lease at the start of a window and during a call. Otherwise a
/// slow store would get more requests than a fast store, and stay slow.
#[test]
fn slow_store_gets_few_requests() {
    let quota = Quota::per_second(2_000).fixed_window();
    for (delay, most) in [(1, 150), (10, 400), (20, 1_200), (40, 5_500)] {
        let delays = Duration::from_millis(delay)..Duration::from_millis(delay + 1);
        let stats = leased_load(quota, 4, delays);
        assert!(stats.by_store < most, "{delay} ms: {stats:?}");
        // A request that waits counts once, so leases are no larger than the demand.
        assert_eq!(stats.units_returned, 0, "{delay} ms: {stats:?}");
    }
}

/// Sends requests at once over a network with a constant delay, which keeps the order of its calls.
#[test]
fn waiting_requests_are_answered_in_order() {
    run(async {
        let (_, store) = instance_over(Duration::from_millis(3)..Duration::from_micros(3_001));
        make_hot(&store, &QUOTA, 0).await;
        let mut requests = JoinSet::new();
        for number in 0..100 {
            let store = store.clone();
            requests.spawn(async move {
                check(&store, &[Charge::new(LIMIT, &QUOTA, &key(0))]).await;
                number
            });
        }
        let mut answered = Vec::new();
        while let Some(number) = requests.join_next().await {
            answered.push(number.unwrap());
        }
        assert!(answered.is_sorted(), "{answered:?}");
    });
}

#[test]
fn lease_before_new_window_causes_no_pause() {
    let quota = Quota::per_second(25_000).fixed_window();
    let delays = Duration::from_micros(100)..Duration::from_millis(4);
    let stats = leased_load(quota, 50, delays);
    assert!(stats.by_store < 1_500, "{stats:?}");
}

#[test]
fn cache_around_leases_adds_no_calls() {
    for (units, instances) in [(100, 1), (300, 4), (1_000, 4), (1_000, 16)] {
        for load in [2, 3, 6, 15] {
            let [cache, leases, both] = [Stack::Cache, Stack::Leases, Stack::Both]
                .map(|stack| calls(stack, units, instances, load));
            let case = format!(
                "{units}/s, {instances} instances, load {load}: {cache} %, {leases} %, {both} %"
            );
            println!("{case}");
            assert!(both <= leases && leases <= cache, "{case}");
        }
    }
}
