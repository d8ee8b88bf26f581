//! Tests that the memory store conforms, alone and behind a box.

use tower_quota_core::{BoxStore, MemoryStore};
use tower_quota_testkit::{ManualClock, conformance_tests};

async fn memory(clock: ManualClock, _: String) -> MemoryStore {
    MemoryStore::with_clock(10_000, clock)
}

conformance_tests!(memory);

mod boxed {
    use super::*;

    async fn boxed(clock: ManualClock, prefix: String) -> BoxStore {
        BoxStore::new(memory(clock, prefix).await)
    }

    conformance_tests!(boxed);
}
