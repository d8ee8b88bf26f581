//! Tests properties of the model, over random quotas and random traces.
//!
//! Set `PROPTEST_CASES` for a longer run. Commit `proptest-regressions/`, which keeps the smallest
//! case of each failure for later runs.

#![expect(clippy::unwrap_used, reason = "tests may panic")]

mod bounds;
mod change;
mod changed_refunds;
mod codec;
mod drift;
mod evictions;
mod holds;
mod oracle;
mod promises;
mod raises;
mod refunds;
mod rollouts;
mod shares;
mod stillness;
mod streams;
mod trace;
mod turns;
mod versions;

use proptest::prelude::{ProptestConfig, any};
use proptest::test_runner::FileFailurePersistence;

/// Returns the configuration of all properties, with few enough cases that the run takes seconds.
fn config() -> ProptestConfig {
    let regressions = FileFailurePersistence::Direct("tests/properties/proptest-regressions.txt");
    // `default()` reads PROPTEST_CASES.
    let cases = std::env::var_os("PROPTEST_CASES").map_or(400, |_| ProptestConfig::default().cases);
    ProptestConfig {
        cases,
        failure_persistence: Some(Box::new(regressions)),
        ..ProptestConfig::default()
    }
}

/// Draws a number from a range, with equal chances for every order of magnitude.
fn magnitude(low: u64, high: u64) -> impl proptest::strategy::Strategy<Value = u64> + Clone {
    use proptest::strategy::Strategy;
    let bits = |n: u64| u64::BITS - n.leading_zeros();
    (bits(low).max(1)..=bits(high).max(1), any::<u64>()).prop_map(move |(bits, noise)| {
        let top = 1_u64 << (bits - 1);
        (top | (noise & (top - 1))).clamp(low, high)
    })
}
