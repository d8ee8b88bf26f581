//! Admissions that say nothing of the next request.

use std::time::Duration;

use tower_quota_core::{Charge, Key, Left, LimitStatus, Outcome, Quota, RefusalCache, Store};
use tower_quota_testkit::{ScriptedAnswer, ScriptedStore, SharedStore, block_on};

use crate::client;

/// Answers that one limit has taken its last unit, and that another one refuses: a refund may be under way.
#[test]
fn taken_units_of_a_refused_request_say_nothing() {
    let (store, quota) = (ScriptedStore::new(), Quota::per_minute(1).sliding_window());
    let (key, everyone) = (client(1), Key::EVERYONE);
    let cache = RefusalCache::with_clock(SharedStore(store.clone()), store.clock().clone());
    let left = Left::new(0, Duration::from_secs(60));
    let status = |name: &'static str, left, outcome| {
        let taken = u64::from(outcome == Outcome::Allow);
        LimitStatus {
            name: name.into(),
            limit: 1,
            left,
            taken,
            outcome,
            is_shadow: false,
        }
    };
    let taken = status(
        "taken",
        left.again_after(Duration::from_secs(50)),
        Outcome::Allow,
    );
    let refusing = status("refusing", left, Outcome::Refuse(Duration::from_secs(9)));
    store.push(ScriptedAnswer::statuses([taken, refusing]));
    let charges = [
        Charge::new("taken", &quota, &key),
        Charge::new("refusing", &quota, &everyone),
    ];
    assert!(!block_on(cache.check(&charges)).unwrap().is_allowed());
    assert!(block_on(cache.check(&charges[..1])).unwrap().is_allowed());
    assert_eq!(store.operations().len(), 2);
}

/// Answers with the state of a bucket, whose last unit was taken: the next request is admitted with a wait.
#[test]
fn bucket_refuses_no_request_that_may_wait() {
    let (store, quota, key) = (ScriptedStore::new(), Quota::per_second(10), client(1));
    let cache = RefusalCache::with_clock(SharedStore(store.clone()), store.clock().clone());
    let charge = Charge::new("second", &quota, &key);
    let taken = LimitStatus::of_bucket("second".into(), &quota, 9 * quota.grain(), 1);
    let used = LimitStatus {
        left: Left::of_bucket(&quota, 10 * quota.grain()),
        taken: 1,
        ..taken
    };
    for (asked, charge) in [
        (2, charge.max_wait(Duration::from_millis(100))),
        (3, charge),
    ] {
        store.push(ScriptedAnswer::statuses([used]));
        assert!(block_on(cache.check(&[charge])).unwrap().is_allowed());
        block_on(cache.check(&[charge])).unwrap();
        assert_eq!(store.operations().len(), asked);
    }
}
