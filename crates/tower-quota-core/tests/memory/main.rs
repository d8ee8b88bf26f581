//! Tests the memory store through the public interface.

mod everyone;
mod evicted;
mod pressure;
mod rows;

use tower_quota_core::{Charge, Decision, Key, MemoryStore, Name, Quota, Store};
use tower_quota_testkit::{ManualClock, block_on};

const CLIENT: Name = Name::new("client");
const LIMIT: Name = Name::new("limit");

fn store(capacity: usize) -> (MemoryStore, ManualClock) {
    let clock = ManualClock::default();
    (MemoryStore::with_clock(capacity, clock.clone()), clock)
}

fn check(store: &MemoryStore, charges: &[Charge<'_>]) -> Decision {
    block_on(store.check(charges)).unwrap()
}

/// Checks `cost` units of one limit for the client of this number.
fn ask(store: &MemoryStore, quota: &Quota, client: u64, cost: u64) -> Decision {
    check(
        store,
        &[Charge::new(LIMIT, quota, &Key::number(CLIENT, client)).cost(cost)],
    )
}

fn left(store: &MemoryStore, quota: &Quota, client: u64) -> u64 {
    ask(store, quota, client, 0).statuses()[0].remaining()
}
