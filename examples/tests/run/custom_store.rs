//! Tests that the custom store conforms, agrees with the model, and keeps the counters after a restart.

use tower_quota::{Key, Name, Quota, Store, store::Charge};
use tower_quota_testkit::differential::Differential;
use tower_quota_testkit::{ManualClock, block_on, conformance_tests};

use self::example::RedbStore;
use crate::example::{Example, get};

#[path = "../../custom_store.rs"]
#[allow(dead_code, reason = "an example is a program of its own")]
mod example;

mod conformance {
    use super::*;

    /// Opens a store over a temporary file. The folder is deleted at once, while the file stays open.
    async fn store(clock: ManualClock, _: String) -> RedbStore {
        let folder = tempfile::tempdir().unwrap();
        RedbStore::open(folder.path().join("counters"), clock).unwrap()
    }

    conformance_tests!(store);
}

#[test]
fn custom_store_agrees_with_model() {
    Differential::new().cases(40).run(|trace| {
        let folder = tempfile::tempdir().unwrap();
        let store = RedbStore::open(folder.path().join("counters"), trace.clock()).unwrap();
        block_on(trace.compare(&store))
    });
}

#[test]
fn custom_store_keeps_counters_after_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("counters");
    let (clock, quota) = (ManualClock::default(), Quota::per_hour(5));
    let ann = Key::owned(Name::new("user"), "ann");
    let left = |store: &RedbStore, cost| {
        let decision =
            block_on(store.check(&[Charge::new("hour", &quota, &ann).cost(cost)])).unwrap();
        decision.statuses()[0].remaining()
    };
    let store = RedbStore::open(&path, clock.clone()).unwrap();
    assert_eq!(left(&store, 3), 2);
    store.flush().unwrap();
    drop(store);
    let store = RedbStore::open(&path, clock.clone()).unwrap();
    assert_eq!(left(&store, 0), 2);

    // Flushing deletes counters without used units.
    clock.advance(std::time::Duration::from_secs(3_600));
    store.flush().unwrap();
    assert_eq!(left(&store, 0), 5);
}

#[test]
fn custom_store_limits_a_client() {
    let folder = tempfile::tempdir().unwrap();
    let counters = folder.path().join("counters");
    let example = Example::start("custom_store", &[("COUNTERS", counters.to_str().unwrap())]);
    for _ in 0..5 {
        example.expect(&get("/"), 200, &["hello"]);
    }
    example.expect(&get("/"), 429, &["retry-after"]);
}
