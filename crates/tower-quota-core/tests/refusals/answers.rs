//! Tests requests that the cache answers from memory.

use std::sync::Arc;
use std::time::Duration;

use tower_quota_core::{
    BoxStore, Charge, Decision, Key, MemoryStore, Operation, Outcome, Quota, RefusalCache, Store,
};
use tower_quota_testkit::block_on;

use crate::{MINUTE, Setting, client};

#[test]
fn answer_equals_that_of_store() {
    for quota in [
        MINUTE,
        MINUTE.fixed_window(),
        MINUTE.sliding_window(),
        MINUTE.sliding_log(),
        MINUTE.gcra(),
    ] {
        let setting = Setting::new();
        let key = client(1);
        let charge = Charge::new("minute", &quota, &key);
        setting.check(&[charge.cost(4)]);
        setting.check(&[charge.cost(3)]);
        for pause in [0, 1, 333_333, 500_000] {
            setting.clock.advance(Duration::from_micros(pause));
            let (known, was_asked) = setting.watch(&[charge.cost(3)]);
            assert!(!was_asked);
            let Ok(decision) = setting.store.memory.check(&[charge.cost(3)]).into_inner();
            assert_eq!(known, decision, "{quota:?}");
        }
        assert_eq!(setting.cache.stats().answered, 4);
    }
}

#[test]
fn refusal_older_than_a_second_asks() {
    let setting = Setting::new();
    let key = client(1);
    let charge = Charge::new("minute", &MINUTE, &key).cost(6);
    setting.check(&[charge]);
    setting.check(&[charge]);
    // In the last eighth of the second, one request renews the entry.
    for (pause, is_asked) in [(0, false), (874_999, false), (1, true), (1, false)] {
        setting.clock.advance(Duration::from_micros(pause));
        assert_eq!(setting.watch(&[charge]).1, is_asked);
    }
}

#[test]
fn unexpected_admission_ends_older_refusal() {
    let setting = Setting::new();
    let key = client(1);
    let charge = Charge::new("minute", &MINUTE, &key);
    for cost in [6, 1] {
        setting.check(&[charge.cost(cost)]);
    }
    // Another process resets the limit.
    let Ok(_) = setting
        .store
        .memory
        .apply(Operation::Reset, &[charge])
        .into_inner();
    setting.clock.advance(Duration::from_millis(1_500));
    assert!(setting.check(&[charge.cost(5)]).is_allowed());
    setting.fail(true);
    assert!(block_on(setting.cache.check(&[charge])).is_err());
}

#[test]
fn cost_above_capacity_never_fits() {
    let setting = Setting::new();
    let key = client(1);
    let charge = Charge::new("minute", &MINUTE, &key);
    for cost in [4, 1_000_000] {
        setting.check(&[charge.cost(cost)]);
    }
    assert_eq!(setting.check(&[charge.cost(7)]).outcome(), Outcome::Never);
    assert_eq!(setting.calls(), 2);
    // The refusal says nothing about smaller costs.
    assert!(setting.check(&[charge.cost(2)]).is_allowed());
}

#[test]
fn smaller_cost_and_other_limits_ask() {
    let setting = Setting::new();
    let (key, other) = (client(1), client(2));
    let charge = Charge::new("minute", &MINUTE, &key);
    setting.check(&[charge.cost(4)]);
    setting.check(&[charge.cost(3)]);
    let is_asked = |charges: &[Charge<'_>]| setting.watch(charges).1;
    assert!(!is_asked(&[charge.cost(3)]));
    assert!(!is_asked(&[charge.cost(6)]));
    assert!(is_asked(&[charge.cost(0)]));
    assert!(is_asked(&[charge.cost(2)]));
    assert!(!is_asked(&[charge]), "the store has admitted these two");
    assert!(is_asked(&[Charge::new("minute", &MINUTE, &other).cost(3)]));
    assert!(is_asked(&[Charge::new("hour", &MINUTE, &key).cost(3)]));
    assert!(
        is_asked(&[charge.cost(3).shadow()]),
        "a shadow refuses nothing"
    );
    assert!(!is_asked(&[charge.cost(3)]));
    let raised = Quota::per_minute(60);
    assert!(is_asked(&[Charge::new("minute", &raised, &key).cost(3)]));
}

#[test]
fn partial_grants_and_waits_are_distinguished() {
    let setting = Setting::new();
    let key = client(1);
    let charge = Charge::new("minute", &MINUTE, &key);
    setting.check(&[charge.cost(4)]);
    assert_eq!(
        setting.check(&[charge.cost(3)]).outcome(),
        Outcome::Refuse(Duration::from_secs(10))
    );
    // Two units are left, so a partial grant gets them.
    assert!(setting.watch(&[charge.cost(3).at_most()]).1);
    assert!(!setting.watch(&[charge.cost(3).at_most()]).1);
    assert!(!setting.watch(&[charge]).1);
    let patient = charge.max_wait(Duration::from_secs(10));
    let (decision, was_asked) = setting.watch(&[patient]);
    assert!(was_asked && decision.is_allowed());
    assert!(!setting.watch(&[charge]).1);
}

#[test]
fn refusal_has_all_statuses_in_order() {
    let setting = Setting::new();
    let (key, other) = (client(1), client(2));
    let charges = [
        Charge::new("day", &MINUTE, &key),
        Charge::new("shadow", &MINUTE, &other).shadow(),
        Charge::new("burst", &MINUTE, &key),
    ];
    setting.check(&[charges[2].cost(6)]);
    let names = |decision: &Decision| -> Vec<String> {
        let statuses = decision.statuses().iter();
        statuses.map(|status| status.name.to_string()).collect()
    };
    // The cache knows all keys of the first request from the store's answer.
    let asked = setting.check(&charges);
    let (known, was_asked) = setting.watch(&charges);
    assert!(!was_asked);
    assert_eq!(known, asked);
    assert_eq!(names(&known), ["day", "shadow", "burst"]);
    // A limit of an unknown key has the status of a new client, and never refuses.
    let unknown = client(3);
    let charges = [
        Charge::new("shadow", &MINUTE, &unknown).shadow(),
        charges[2],
    ];
    let (known, was_asked) = setting.watch(&charges);
    assert!(!was_asked);
    assert_eq!(names(&known), ["shadow", "burst"]);
    assert_eq!(known.statuses()[0].remaining(), 6);
    assert_eq!(known.would_refuse().count(), 0);
}

#[test]
fn refusal_from_memory_is_not_remembered() {
    let setting = Setting::new();
    let outer = || RefusalCache::with_clock(setting.cache.clone(), setting.clock.clone());
    // Two layers on clones of one cache have a cache each in front of it.
    let (one, other) = (outer(), outer());
    let key = client(1);
    let charge = Charge::new("minute", &MINUTE, &key);
    for cost in [6, 1, 1] {
        block_on(one.check(&[charge.cost(cost)])).unwrap();
    }
    assert!(!block_on(other.check(&[charge])).unwrap().is_allowed());
    assert_eq!(setting.calls(), 2);
    assert_eq!((one.stats().remembered, other.stats().remembered), (1, 0));
}

#[test]
fn refund_reset_and_charge_end_refusal() {
    let setting = Setting::new();
    let key = client(1);
    let charge = Charge::new("minute", &MINUTE, &key);
    let mut taken = setting.check(&[charge.cost(6)]);
    let refund = taken.refund().unwrap();
    let taken_at = taken.at();
    for (operation, is_allowed) in [
        (Operation::Charge, false),
        (Operation::Surcharge { taken_at }, false),
        (refund, false),
        (Operation::Reset, true),
    ] {
        setting.check(&[charge.cost(2)]);
        assert!(!setting.watch(&[charge.cost(2)]).1);
        setting.apply(operation, &[charge]);
        let (decision, was_asked) = setting.watch(&[charge.cost(2)]);
        assert_eq!(
            (was_asked, decision.is_allowed()),
            (true, is_allowed),
            "{operation:?}"
        );
    }
}

#[test]
fn peek_calls_store_and_keeps_refusal() {
    let setting = Setting::new();
    let key = client(1);
    let charge = Charge::new("minute", &MINUTE, &key).cost(6);
    setting.check(&[charge]);
    setting.check(&[charge]);
    let before = setting.calls();
    assert!(!setting.apply(Operation::Peek, &[charge]).is_allowed());
    assert_eq!(setting.calls(), before + 1);
    assert!(!setting.watch(&[charge]).1);
}

#[test]
fn max_age_of_zero_calls_store_each_time() {
    let setting = Setting::new();
    let cache = setting.cache.clone().max_age(Duration::ZERO);
    let setting = Setting { cache, ..setting };
    let key = client(1);
    let charge = Charge::new("minute", &MINUTE, &key).cost(6);
    for _ in 0..3 {
        assert!(setting.watch(&[charge]).1);
    }
    setting.fail(true);
    assert!(!setting.check(&[charge]).is_allowed());
}

#[test]
fn store_in_memory_remembers_nothing() {
    let cache = RefusalCache::new(MemoryStore::new());
    assert!(!cache.is_shared());
    for _ in 0..9 {
        block_on(cache.check(&[Charge::new("minute", &MINUTE, &Key::EVERYONE)])).unwrap();
    }
    assert_eq!(cache.stats(), tower_quota_core::RefusalStats::default());
}

#[test]
fn boxed_and_shared_pointers_forward_is_shared() {
    assert!(!BoxStore::new(MemoryStore::new()).is_shared());
    assert!(!Arc::new(MemoryStore::new()).is_shared());
    let store = Setting::new().store;
    assert!(BoxStore::new(store.clone()).is_shared() && Arc::new(store).is_shared());
}

#[test]
fn boxed_cache_shares_remembered_refusals() {
    let setting = Setting::new();
    let (key, boxed) = (client(1), setting.cache.boxed());
    let charge = Charge::new("minute", &MINUTE, &key).cost(6);
    setting.check(&[charge]);
    setting.check(&[charge]);
    let calls = setting.calls();
    assert!(!block_on(boxed.check(&[charge])).unwrap().is_allowed());
    assert_eq!(setting.calls(), calls);
    block_on(boxed.apply(Operation::Reset, &[charge])).unwrap();
    assert!(setting.check(&[charge]).is_allowed());
}
