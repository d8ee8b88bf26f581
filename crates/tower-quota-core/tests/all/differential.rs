//! Tests that the memory store and the model agree on random traces, with and without other keys.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tower_quota_core::{Charge, Key, MemoryStore, Name, Operation, Quota, Store};
use tower_quota_testkit::block_on;
use tower_quota_testkit::differential::Differential;

const REGRESSIONS: &str = "tests/differential-regressions.txt";
/// The number of keys in a trace.
const KEYS: usize = 3;
/// The places that the keys may take. A row with several logs or holds takes more than one place.
const PLACES: usize = 8 * KEYS;
const LIMITS: [&str; 3] = ["one", "two", "three"];
/// A quota that refills slowly.
const SLOW: Quota = Quota::new(1, Duration::from_secs(366 * 86_400));
/// The number of quotas, which is more than a shard keeps definitions for.
const QUOTAS: u64 = 2_100;

#[test]
fn memory_store_agrees_with_model() {
    Differential::new().regressions(REGRESSIONS).run(|trace| {
        let store = MemoryStore::with_clock(PLACES, trace.clock());
        block_on(trace.compare(&store))?;
        assert_eq!(store.evicted(), 0);
        Ok(())
    });
}

#[test]
fn growing_store_agrees_with_model() {
    for capacity in [1_000, 100_000] {
        Differential::new().regressions(REGRESSIONS).run(|trace| {
            let store = CrowdedStore::new(
                MemoryStore::with_clock(capacity, trace.clock()),
                capacity - PLACES,
            );
            block_on(trace.compare(&store))?;
            assert_eq!(store.store.evicted(), 0);
            Ok(())
        });
    }
}

#[test]
fn dropped_definitions_agree_with_model() {
    Differential::new()
        .cases(50)
        .regressions(REGRESSIONS)
        .run(|trace| {
            // Use a store so small that all keys share a shard with its definitions.
            let store = MemoryStore::with_clock(PLACES, trace.clock());
            use_many_quotas(&store);
            block_on(trace.compare(&store))
        });
}

/// A memory store that gets other keys between the requests, so that its tables grow.
struct CrowdedStore {
    store: MemoryStore,
    calls: AtomicUsize,
    others: AtomicU64,
    most_others: u64,
}

impl CrowdedStore {
    fn new(store: MemoryStore, most_others: usize) -> Self {
        Self {
            store,
            calls: AtomicUsize::new(0),
            others: AtomicU64::new(0),
            most_others: most_others as u64,
        }
    }

    /// Adds from 1 to 1,024 other keys with up to three limits, at every fifth call.
    fn add_others(&self) {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        if !call.is_multiple_of(5) {
            return;
        }
        let limits = &LIMITS[..1 + call % LIMITS.len()];
        let first = self.others.load(Ordering::Relaxed);
        let end = (first + (1 << (call % 11))).min(self.most_others);
        for other in first..end {
            let key = Key::number(Name::new("other"), other);
            let charges: Vec<Charge<'_>> = limits
                .iter()
                .map(|limit| Charge::new(*limit, &SLOW, &key))
                .collect();
            assert!(block_on(self.store.check(&charges)).unwrap().is_allowed());
        }
        self.others.store(end, Ordering::Relaxed);
    }
}

impl Store for CrowdedStore {
    type Error = <MemoryStore as Store>::Error;
    type Future = <MemoryStore as Store>::Future;

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future {
        self.add_others();
        self.store.apply(operation, charges)
    }
}

/// Checks a limit by many other quotas, and forgets them.
fn use_many_quotas(store: &MemoryStore) {
    let key = Key::number(Name::new("other"), 0);
    for units in 1..=QUOTAS {
        let quota = Quota::new(units, Duration::from_secs(86_400));
        let used = [Charge::new("used", &quota, &key)];
        block_on(store.check(&used)).unwrap();
        block_on(store.apply(Operation::Reset, &used)).unwrap();
    }
}
