//! Tests that the refusal cache decides like the model, except for the documented caveats.

use tower_quota_core::RefusalCache;
use tower_quota_testkit::conformance::{CASES, run};
use tower_quota_testkit::{ManualClock, block_on};

use crate::SharedStore;

/// The cases that fail with answers from memory, and the reason.
const EXCEPTIONS: [(&str, &str); 4] = [
    (
        "first_refusals_are_free",
        "strikes reach the store a tenth of a second later",
    ),
    ("block_grows_and_expires", "the same"),
    ("cost_zero_is_not_blocked", "the same"),
    ("peek_sees_a_block", "the same"),
];

#[test]
fn cache_decides_like_model() {
    let open = async |clock: ManualClock, _: String| {
        RefusalCache::with_clock(SharedStore::new(&clock), clock)
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
