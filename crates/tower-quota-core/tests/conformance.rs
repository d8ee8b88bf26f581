//! The memory store passes the suite that every store runs.

use tower_quota_core::{BoxStore, MemoryStore};
use tower_quota_testkit::{ManualClock, block_on, conformance};

#[test]
fn the_memory_store_conforms() {
    block_on(conformance::suite(async |clock: ManualClock, _| MemoryStore::with_clock(10_000, clock))).unwrap();
}

#[test]
fn so_it_does_behind_a_box() {
    let boxed = async |clock: ManualClock, _| BoxStore::new(MemoryStore::with_clock(10_000, clock));
    block_on(conformance::suite(boxed)).unwrap();
}
