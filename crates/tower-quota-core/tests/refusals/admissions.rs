//! Admissions that say nothing of the next request.

use std::time::Duration;

use tower_quota_core::{Charge, Key, Left, LimitStatus, Outcome, Quota, RefusalCache, Store};
use tower_quota_testkit::{ScriptedAnswer, ScriptedStore, SharedStore, block_on};

use crate::{Setting, client};

/// Answers that one limit has taken its last unit, and that another one refuses: a refund may be under way.
#[test]
fn taken_units_of_a_refused_request_say_nothing() {
    let (store, quota) = (ScriptedStore::new(), Quota::per_minute(1).sliding_window());
    let (key, everyone) = (client(1), Key::EVERYONE);
    let cache = RefusalCache::with_clock(SharedStore(store.clone()), store.clock().clone());
    let left = Left::new(0, Duration::from_secs(60));
    let status = |name: &'static str, left, outcome| {
        let taken = u64::from(outcome == Outcome::Allow);
        LimitStatus { name: name.into(), limit: 1, left, taken, outcome, is_shadow: false }
    };
    let taken = status("taken", left.again_after(Duration::from_secs(50)), Outcome::Allow);
    let refusing = status("refusing", left, Outcome::Refuse(Duration::from_secs(9)));
    store.push(ScriptedAnswer::statuses([taken, refusing]));
    let charges = [Charge::new("taken", &quota, &key), Charge::new("refusing", &quota, &everyone)];
    assert!(!block_on(cache.check(&charges)).unwrap().is_allowed());
    assert!(block_on(cache.check(&charges[..1])).unwrap().is_allowed());
    assert_eq!(store.operations().len(), 2);
}

/// Admits requests that wait for their turns: each would be refused if it could not wait.
#[test]
fn admission_with_a_wait_says_nothing() {
    let (setting, quota, key) = (Setting::new(), Quota::per_second(10), client(1));
    let charge = Charge::new("second", &quota, &key);
    setting.check(&[charge.cost(10)]);
    let patient = charge.max_wait(Duration::from_millis(100));
    assert!(setting.check(&[patient]).is_allowed());
    setting.clock.advance(Duration::from_millis(100));
    let (decision, was_asked) = setting.watch(&[patient]);
    assert!(was_asked && decision.is_allowed());
}
