//! Tests that the wrapper without leases decides exactly like the inner store.

use std::time::Duration;

use tower_quota_core::MemoryStore;
use tower_quota_lease::{LeaseOptions, Leased};
use tower_quota_testkit::{ManualClock, conformance_tests};

async fn without_leases(clock: ManualClock, _: String) -> Leased<MemoryStore> {
    Leased::with_options(
        MemoryStore::with_clock(10_000, clock),
        LeaseOptions::default().longest(Duration::ZERO),
    )
}

conformance_tests!(without_leases);
