//! Tests the refusal cache in front of a store, on one clock.

#![expect(clippy::unwrap_used, reason = "tests may panic")]

mod answers;
mod conforming;
mod counted;
mod exact;
mod flood;
mod full_table;
mod holds;
mod in_flight;
mod outages;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tower_quota_core::{Charge, Decision, Key, Name, Operation, Quota, RefusalCache, Store};
use tower_quota_testkit::{ManualClock, ModelStore, block_on};

const CLIENT: Name = Name::new("client");
const MINUTE: Quota = Quota::per_minute(6);

/// A store of the model that other processes could share.
#[derive(Clone, Debug)]
struct SharedStore {
    memory: ModelStore,
    calls: Arc<AtomicU64>,
    fails: Arc<AtomicBool>,
}

impl SharedStore {
    fn new(clock: &ManualClock) -> Self {
        Self {
            memory: ModelStore::with_clock(clock.clone()),
            calls: Arc::default(),
            fails: Arc::default(),
        }
    }
}

impl Store for SharedStore {
    type Error = std::io::Error;
    type Future = std::future::Ready<std::io::Result<Decision>>;

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future {
        self.calls.fetch_add(1, Ordering::Relaxed);
        if self.fails.load(Ordering::Relaxed) {
            return std::future::ready(Err(std::io::Error::other("unavailable")));
        }
        let Ok(decision) = self.memory.apply(operation, charges).into_inner();
        std::future::ready(Ok(decision))
    }
}

/// A refusal cache in front of a shared store, on one clock.
struct Setting {
    cache: RefusalCache<SharedStore>,
    store: SharedStore,
    clock: ManualClock,
}

impl Setting {
    fn new() -> Self {
        let clock = ManualClock::default();
        let store = SharedStore::new(&clock);
        let cache = RefusalCache::with_clock(store.clone(), clock.clone());
        Self {
            cache,
            store,
            clock,
        }
    }

    fn calls(&self) -> u64 {
        self.store.calls.load(Ordering::Relaxed)
    }

    fn fail(&self, fails: bool) {
        self.store.fails.store(fails, Ordering::Relaxed);
    }

    fn check(&self, charges: &[Charge<'_>]) -> Decision {
        block_on(self.cache.check(charges)).unwrap()
    }

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Decision {
        block_on(self.cache.apply(operation, charges)).unwrap()
    }

    /// Sends a check. Returns the decision, and whether the cache has called the store.
    fn watch(&self, charges: &[Charge<'_>]) -> (Decision, bool) {
        let before = self.calls();
        let decision = self.check(charges);
        (decision, self.calls() > before)
    }
}

const fn client(number: u64) -> Key<'static> {
    Key::number(CLIENT, number)
}

/// Polls a future once, and drops it.
fn poll_once<F: Future>(future: F) {
    let mut future = Box::pin(future);
    let _ = future
        .as_mut()
        .poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
}
