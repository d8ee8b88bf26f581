//! Tests all pairs of what a charge can be, on real servers.

use std::cell::RefCell;
use std::time::Duration;

use tower_quota_core::{Charge, Clock, Key, Operation, Quota, Store, Timestamp};
use tower_quota_dev::{RedisCluster, RedisServer};
use tower_quota_redis::RedisStore;
use tower_quota_testkit::ManualClock;
use tower_quota_testkit::pairs::{Aspect, Effect, Fault, Meeting, Pairs, Promise, World};

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
}

#[derive(Clone)]
struct Lane {
    clock: ManualClock,
    stores: [RedisStore; 2],
}

impl World for OnServers<'_> {
    type Store = RedisStore;

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
        if fault != Fault::Forget {
            return Effect::Unknown;
        }
        for key in keys {
            self.forget(key).await;
        }
        Effect::Lost
    }
}

impl OnServers<'_> {
    /// Deletes the entry of a key, with all limits that the test has.
    async fn forget(&self, key: &Key<'_>) {
        let quota = Quota::per_second(1);
        let limits = ["one", "two"].map(|limit| Charge::new(limit, &quota, key));
        let reset = self.lane.stores[0].apply(Operation::Reset, &limits);
        reset.await.unwrap();
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
fn run(pairs: &Pairs, connect: impl AsyncFn(ManualClock) -> RedisStore) {
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
            OnServers { lane, free: &free }
        };
        pairs.run(open).await.unwrap();
    });
}

#[test]
fn server_keeps_promises_of_all_pairs() {
    let (pairs, server) = (pairs(), RedisServer::start());
    run(&pairs, async |clock| {
        options().clock(clock).connect(&server.url()).await.unwrap()
    });
    crossings::compare("Redis", &pairs);
}

#[test]
fn cluster_keeps_promises_of_all_pairs() {
    let (mut pairs, cluster) = (pairs(), RedisCluster::start());
    // A client with one key is in one partition, which decides as a single server.
    pairs.meetings = vec![Meeting::TwoKeys];
    let bounded = Promise::bounded("each partition decides by its own clock");
    pairs.exceptions = vec![(Meeting::TwoKeys, Aspect::Hold, bounded)];
    pairs.errors = vec![(Aspect::Hold, Aspect::Hold, "HoldsOfSeveralKeys")];
    run(&pairs, async |clock| {
        options()
            .clock(clock)
            .cluster(cluster.urls())
            .await
            .unwrap()
    });
    crossings::compare("Redis Cluster", &pairs);
}
