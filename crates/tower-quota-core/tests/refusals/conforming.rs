//! The refusal cache as a store: it decides what the model decides, but for what its documentation names.

use tower_quota_core::{MemoryStore, RefusalCache};
use tower_quota_testkit::conformance::{CASES, run};
use tower_quota_testkit::{ManualClock, block_on};

use crate::SharedStore;

/// The cases that an answer from memory fails, and the reason.
const EXCEPTIONS: [(&str, &str); 6] = [
    (
        "subsets_and_orders_share_the_counters",
        "a limit of which nothing is known is not reported",
    ),
    (
        "refusal_reports_what_is_left",
        "the wait of a larger cost of a sliding window is that of the smaller one",
    ),
    ("retry_after_is_exact", "the same"),
    (
        "clock_going_backwards_changes_nothing",
        "the clock of the cache stands still instead",
    ),
    (
        "shadow_is_taken_with_the_others",
        "counted refusals reach the store a tenth of a second later",
    ),
    (
        "first_refusals_are_free",
        "strikes reach the store a tenth of a second later",
    ),
];

#[test]
fn cache_decides_like_model() {
    let open = async |clock: ManualClock, _: String| {
        let memory = MemoryStore::with_clock(1_000, clock.clone());
        RefusalCache::with_clock(
            SharedStore {
                memory,
                ..SharedStore::default()
            },
            clock,
        )
    };
    for case in CASES {
        let reason = EXCEPTIONS.iter().find(|(name, _)| name == case);
        match (block_on(run(case, &[], open)), reason) {
            (Ok(()), None) | (Err(_), Some(_)) => {}
            (Ok(()), Some((name, _))) => panic!("{name} is no exception any more"),
            (Err(failure), None) => panic!("{case}: {failure}"),
        }
    }
}
