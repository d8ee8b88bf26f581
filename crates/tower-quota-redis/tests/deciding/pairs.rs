//! Tests all pairs of what a charge can be, on real servers.

use std::cell::RefCell;
use std::time::Duration;

use redis::{Client, Connection};
use tower_quota_core::{Clock, Key, Quota, Timestamp};
use tower_quota_dev::{RedisCluster, RedisServer};
use tower_quota_redis::RedisStore;
use tower_quota_testkit::ManualClock;
use tower_quota_testkit::pairs::{Aspect, Effect, Fault, Meeting, Pairs, Promise, Server, World};

use crate::common::holds::key_of_holds;
use crate::common::options;

#[path = "../../../../tests/pairs/mod.rs"]
mod shared;

use shared::crossings;

/// The number of runs at the same time, each on two stores of its own.
const LANES: usize = 8;

/// Two instances on real servers, whose stores the next run uses again.
struct OnServers<'a> {
    lane: Lane,
    free: &'a RefCell<Vec<Lane>>,
    primaries: &'a RefCell<Vec<Connection>>,
}

#[derive(Clone)]
struct Lane {
    clock: ManualClock,
    stores: [RedisStore; 2],
}

impl World for OnServers<'_> {
    type Store = RedisStore;

    const FAULTS: &'static [Fault] = &[Fault::Forget, Fault::ForgetHolds];

    async fn open(&mut self, instance: usize) -> RedisStore {
        self.lane.stores[instance].clone()
    }

    fn now(&self) -> Timestamp {
        self.lane.clock.now()
    }

    async fn pass(&mut self, span: Duration) {
        self.lane.clock.advance(span);
    }

    async fn fault(&mut self, fault: Fault, keys: &[Key<'_>]) -> Effect {
        let entries: Vec<String> = keys
            .iter()
            .map(|key| self.lane.stores[0].key_of(key))
            .collect();
        if fault == Fault::Forget {
            // The sets of the holds stay, and no longer count.
            self.delete(&entries);
            return Effect::Lost(Server::Shared);
        }
        let mut sets = Vec::new();
        for entry in entries {
            sets.extend(["one", "two"].map(|limit| key_of_holds(&entry, limit)));
        }
        self.delete(&sets);
        Effect::LostHolds
    }
}

impl OnServers<'_> {
    fn delete(&self, names: &[String]) {
        let mut pipeline = redis::pipe();
        for name in names {
            pipeline.del(name).ignore();
        }
        for primary in self.primaries.borrow_mut().iter_mut() {
            // The other primaries of a cluster answer with `MOVED`.
            let _ = pipeline.exec(primary);
        }
    }
}

impl Drop for OnServers<'_> {
    fn drop(&mut self) {
        self.free.borrow_mut().push(self.lane.clone());
    }
}

fn pairs() -> Pairs {
    let day = Quota::per_day(2).fixed_window();
    let mut pairs = Pairs::new(Quota::new(2, Duration::from_secs(10)));
    pairs.calendar = Some(day.calendar("Europe/Berlin").unwrap());
    (pairs.steps, pairs.side_by_side) = (2, LANES);
    pairs
}

/// Runs the pairs on stores that `connect` makes.
fn run(pairs: &Pairs, urls: &[String], connect: impl AsyncFn(ManualClock) -> RedisStore) {
    let mut primaries = Vec::new();
    for url in urls {
        primaries.push(
            Client::open(url.as_str())
                .unwrap()
                .get_connection()
                .unwrap(),
        );
    }
    let primaries = RefCell::new(primaries);
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build().unwrap();
    runtime.block_on(async {
        let free = RefCell::new(Vec::new());
        for _ in 0..LANES {
            let clock = ManualClock::default();
            let stores = [connect(clock.clone()).await, connect(clock.clone()).await];
            free.borrow_mut().push(Lane { clock, stores });
        }
        let open = async || {
            let lane: Lane = free.borrow_mut().pop().unwrap();
            lane.clock.set(ManualClock::default().now());
            OnServers {
                lane,
                free: &free,
                primaries: &primaries,
            }
        };
        pairs.run(open).await.unwrap();
    });
}

#[test]
fn server_keeps_promises_of_all_pairs() {
    let (pairs, server) = (pairs(), RedisServer::start());
    run(&pairs, &[server.url()], async |clock| {
        options().clock(clock).connect(&server.url()).await.unwrap()
    });
    crossings::compare::<OnServers<'_>>("Redis", &pairs);
}

#[test]
fn cluster_keeps_promises_of_all_pairs() {
    let (mut pairs, cluster) = (pairs(), RedisCluster::start());
    // A client with one key is in one partition, which decides as a single server.
    pairs.meetings = vec![Meeting::TwoKeys];
    let bounded = Promise::bounded("each partition decides by its own clock");
    pairs.exceptions = vec![(Meeting::TwoKeys, Aspect::Hold, bounded)];
    pairs.errors = vec![(Aspect::Hold, Aspect::Hold, "HoldsOfSeveralKeys")];
    let primaries = [0, 1, 2].map(|node| cluster.node(node).url());
    run(&pairs, &primaries, async |clock| {
        options()
            .clock(clock)
            .cluster(cluster.urls())
            .await
            .unwrap()
    });
    crossings::compare::<OnServers<'_>>("Redis Cluster", &pairs);
}
