//! Decisions in memory before a shared store: from leases, and of known refusals.

use std::error::Error;
use std::hint::black_box;
use std::time::Duration;

use tower_quota_core::{Charge, Decision, Key, MemoryStore, Name, Quota, RefusalCache, Store};
use tower_quota_lease::Leased;
use tower_quota_testkit::SharedStore;

use crate::timing::Step;

/// Returns the requests of one client of this quota a second, which is leased.
pub(crate) fn leased(units: u64) -> Result<Step, Box<dyn Error>> {
    let store = Leased::new(SharedStore(MemoryStore::new()));
    asking(store, Quota::try_new(units, Duration::from_secs(1))?)
}

/// Returns the requests of one client far beyond its quota.
pub(crate) fn refused() -> Result<Step, Box<dyn Error>> {
    let hour = Duration::from_secs(3_600);
    asking(RefusalCache::new(SharedStore(MemoryStore::new())).max_age(hour), Quota::try_new(1, hour)?)
}

fn asking(store: impl Store, quota: Quota) -> Result<Step, Box<dyn Error>> {
    // Leases are fetched in a thread of its own.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    Ok(Box::new(move || {
        let _entered = runtime.enter();
        let key = Key::number(Name::new("client"), 7);
        let charges = [Charge::new("requests", &quota, &key)];
        let mut decision = Decision::default();
        if !store.check_at_once(&charges, &mut decision) {
            _ = runtime.block_on(store.check(&charges));
        }
        black_box(decision);
    }))
}
