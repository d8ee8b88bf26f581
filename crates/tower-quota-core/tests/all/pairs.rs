//! Tests all pairs of what a charge can be, in the stores of this crate.

#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::convert::Infallible;
use std::time::Duration;

use tower_quota_core::{
    BoxStore, Charge, Clock, Decision, Key, MemoryStore, Operation, Quota, RefusalCache, Store,
    Timestamp,
};
use tower_quota_testkit::pairs::{Aspect, Effect, Fault, Pairs, Promise, Server as Place, World};
use tower_quota_testkit::{ManualClock, block_on};

#[path = "../../../../tests/pairs/mod.rs"]
mod shared;

use shared::crossings;
use shared::server::{Link, Server};

const TWO: Quota = Quota::new(2, Duration::from_secs(10));

fn pairs() -> Pairs {
    let day = Quota::per_day(2).fixed_window();
    let mut pairs = Pairs::new(TWO);
    pairs.calendar = Some(day.calendar("Europe/Berlin").unwrap());
    pairs
}

/// Two layers in one process, on clones of a store in memory.
struct InProcess<S> {
    clock: ManualClock,
    stores: [S; 2],
    open: fn(&ManualClock) -> S,
    is_one: bool,
}

impl<S: Clone> InProcess<S> {
    fn new(is_one: bool, open: fn(&ManualClock) -> S) -> Self {
        let clock = ManualClock::default();
        let first = open(&clock);
        let second = if is_one { first.clone() } else { open(&clock) };
        Self {
            stores: [first, second],
            clock,
            open,
            is_one,
        }
    }
}

impl<S: Store + Clone> World for InProcess<S> {
    type Store = S;

    const FAULTS: &'static [Fault] = &[Fault::Restart(0), Fault::Restart(1)];

    async fn open(&mut self, instance: usize) -> S {
        self.stores[instance].clone()
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    async fn pass(&mut self, span: Duration) {
        self.clock.advance(span);
    }

    async fn fault(&mut self, fault: Fault, _: &[Key<'_>]) -> Effect {
        let Fault::Restart(instance) = fault else {
            unreachable!("{fault:?} is no fault of this world")
        };
        let store = (self.open)(&self.clock);
        if self.is_one {
            self.stores = [store.clone(), store];
        } else {
            self.stores[instance] = store;
        }
        Effect::Lost(self.server_of(instance, self.now()))
    }

    fn server_of(&self, instance: usize, _: Timestamp) -> Place {
        match self.is_one {
            true => Place::Shared,
            false => Place::Own(instance),
        }
    }
}

/// Two instances with a refusal cache each, in front of one server.
struct Cached {
    clock: ManualClock,
    server: Server,
}

impl World for Cached {
    type Store = RefusalCache<Link>;

    const FAULTS: &'static [Fault] = &Server::FAULTS;

    async fn open(&mut self, instance: usize) -> Self::Store {
        RefusalCache::with_clock(self.server.link(instance), self.clock.clone())
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    async fn pass(&mut self, span: Duration) {
        self.clock.advance(span);
    }

    async fn fault(&mut self, fault: Fault, _: &[Key<'_>]) -> Effect {
        match fault {
            Fault::Restart(_) => Effect::Kept,
            fault => self.server.fault(fault),
        }
    }
}

async fn cached() -> Cached {
    let clock = ManualClock::default();
    Cached {
        server: Server::new(clock.clone()),
        clock,
    }
}

/// The share of an instance of two, which count by themselves.
#[derive(Clone)]
struct Share(MemoryStore);

impl Store for Share {
    type Error = Infallible;
    type Future = std::future::Ready<Result<Decision, Infallible>>;

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future {
        let quotas: Vec<Quota> = charges
            .iter()
            .map(|charge| charge.quota().divided(2))
            .collect();
        let charges = charges.iter().zip(&quotas);
        let charges: Vec<Charge<'_>> = charges
            .map(|(charge, quota)| charge.with_quota(quota))
            .collect();
        self.0.apply(operation, &charges)
    }

    fn is_shared(&self) -> bool {
        false
    }
}

fn memory(clock: &ManualClock) -> MemoryStore {
    MemoryStore::with_clock(64, clock.clone())
}

#[test]
fn memory_keeps_promises_of_all_pairs() {
    let pairs = pairs();
    block_on(pairs.run(async || InProcess::new(true, memory))).unwrap();
    crossings::compare::<InProcess<MemoryStore>>("memory", &pairs);
}

#[test]
fn memory_keeps_promises_of_small_world() {
    for (quota, steps) in [(TWO, 6), (TWO.fixed_window(), 5), (TWO.sliding_log(), 5)] {
        let pairs = Pairs::new(quota).small_world(steps);
        block_on(pairs.run(async || InProcess::new(true, memory))).unwrap();
    }
}

#[test]
fn boxed_store_keeps_promises_of_all_pairs() {
    let mut pairs = pairs();
    pairs.steps = 2;
    let open = async || InProcess::new(true, |clock| BoxStore::new(memory(clock)));
    block_on(pairs.run(open)).unwrap();
    crossings::compare::<InProcess<BoxStore>>("boxed", &pairs);
}

fn of_cache(mut pairs: Pairs) -> Pairs {
    pairs.promise_all(Promise::bounded(
        "a refusal may last for a second after a refund, a reset, a loss of data or a changed quota elsewhere",
    ));
    pairs
}

#[test]
fn refusal_cache_keeps_promises_of_all_pairs() {
    let pairs = of_cache(pairs());
    block_on(pairs.run(cached)).unwrap();
    crossings::compare::<Cached>("refusal cache", &pairs);
}

#[test]
fn refusal_cache_keeps_promises_of_small_world() {
    let pairs = of_cache(Pairs::new(TWO)).small_world(5);
    block_on(pairs.run(cached)).unwrap();
}

fn of_shares(mut pairs: Pairs) -> Pairs {
    pairs.promise_all(Promise::bounded("the sum of the shares"));
    let without_forced = Promise::Bounded {
        quotas: 1,
        excludes_forced: true,
        by: "the sum of the shares; a debt stays in the share of its instance",
    };
    for aspect in [Aspect::Forced, Aspect::Settled] {
        pairs.promises.push((aspect, without_forced));
    }
    pairs
}

fn open_shares() -> InProcess<Share> {
    InProcess::new(false, |clock| Share(memory(clock)))
}

#[test]
fn shares_keep_promises_of_all_pairs() {
    let pairs = of_shares(pairs());
    block_on(pairs.run(async || open_shares())).unwrap();
    crossings::compare::<InProcess<Share>>("share of an instance", &pairs);
}

#[test]
fn shares_keep_promises_of_small_world() {
    let pairs = of_shares(Pairs::new(TWO)).small_world(5);
    block_on(pairs.run(async || open_shares())).unwrap();
}
