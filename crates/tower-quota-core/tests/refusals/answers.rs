//! Requests that are answered from memory, and their answers.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tower_quota_core::{
    BoxStore, Charge, Decision, Key, Left, LimitStatus, MemoryStore, Operation, Outcome, Quota,
    RefusalCache, Store,
};
use tower_quota_testkit::block_on;

use crate::{MINUTE, Setting, SharedStore, client};

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
        for pause in [0, 1, 333_333, 600_000] {
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
    for (pause, is_asked) in [(0, false), (999_999, false), (1, true), (1, false)] {
        setting.clock.advance(Duration::from_micros(pause));
        assert_eq!(setting.watch(&[charge]).1, is_asked);
    }
}

#[test]
fn admission_ends_older_refusal() {
    let setting = Setting::new();
    let key = client(1);
    let charge = Charge::new("minute", &MINUTE, &key);
    for cost in [6, 1] {
        setting.check(&[charge.cost(cost)]);
    }
    // By another process.
    let Ok(_) = setting
        .store
        .memory
        .apply(Operation::Reset, &[charge])
        .into_inner();
    setting.clock.advance(Duration::from_millis(1_500));
    assert!(
        setting.check(&[charge.cost(5)]).is_allowed(),
        "one unit is left, and five more do not fit"
    );
    setting.fail(true);
    assert!(block_on(setting.cache.check(&[charge])).is_err());
    assert!(
        !block_on(setting.cache.check(&[charge.cost(5)]))
            .unwrap()
            .is_allowed()
    );
}

#[test]
fn cost_that_never_fits_is_not_remembered() {
    let setting = Setting::new();
    let key = client(1);
    setting.check(&[Charge::new("minute", &MINUTE, &key).cost(1_000_000)]);
    assert_eq!(setting.cache.stats().remembered, 0);

    // It says nothing about smaller costs either.
    let charge = Charge::new("minute", &MINUTE, &key);
    for cost in [6, 1, 1_000_000] {
        setting.check(&[charge.cost(cost)]);
    }
    setting.fail(true);
    assert!(!setting.check(&[charge]).is_allowed());
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
    assert!(
        is_asked(&[charge.cost(7)]),
        "a cost above the capacity never fits"
    );
    assert!(is_asked(&[charge.cost(0)]));
    assert!(is_asked(&[charge.cost(2)]));
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
fn all_limits_of_a_refusal_are_reported() {
    let setting = Setting::new();
    let (key, other) = (client(1), client(2));
    let charges = [
        Charge::new("minute", &MINUTE, &key),
        Charge::new("everyone", &MINUTE, &other).shadow(),
        Charge::new("hour", &MINUTE, &key),
    ];
    setting.check(&[charges[0].cost(6)]);
    let asked = setting.check(&charges);
    let (known, was_asked) = setting.watch(&charges);
    assert!(!was_asked);
    assert_eq!(known, asked);
    // Of a limit that was not asked for nothing is known.
    let (known, was_asked) = setting.watch(&[charges[0], Charge::new("day", &MINUTE, &key)]);
    assert!(!was_asked);
    assert_eq!(known.statuses().len(), 1);
}

#[test]
fn partial_answer_is_not_recorded() {
    let setting = Setting::new();
    // Two layers on clones of one cache have a cache each before it.
    let outer = || RefusalCache::with_clock(setting.cache.clone(), setting.clock.clone());
    let (one, other) = (outer(), outer());
    let (key, everyone) = (client(1), Key::EVERYONE);
    let (own, common) = (
        Charge::new("minute", &MINUTE, &key),
        Charge::new("all", &MINUTE, &everyone),
    );
    assert!(block_on(one.check(&[own.cost(6)])).unwrap().is_allowed());
    assert!(!block_on(one.check(&[own])).unwrap().is_allowed());
    // The cache inside knows nothing of the first limit.
    let refusal = block_on(other.check(&[common, own])).unwrap();
    assert_eq!(refusal.statuses().len(), 1);
    assert!(block_on(other.check(&[common])).unwrap().is_allowed());
}

#[test]
fn refund_reset_and_charge_end_refusal() {
    let setting = Setting::new();
    let key = client(1);
    let charge = Charge::new("minute", &MINUTE, &key);
    let mut taken = setting.check(&[charge.cost(6)]);
    let refund = taken.refund().unwrap();
    for (operation, is_allowed) in [
        (Operation::Charge, false),
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
fn peek_asks_and_keeps_refusal() {
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
fn max_age_of_zero_asks_each_time() {
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
    let mut decision = Decision::default();
    for _ in 0..9 {
        assert!(cache.check_at_once(
            &[Charge::new("minute", &MINUTE, &Key::EVERYONE)],
            &mut decision
        ));
        assert!(!cache.refuse_at_once(
            &[Charge::new("minute", &MINUTE, &Key::EVERYONE)],
            &mut decision
        ));
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

/// A store that counts by a smaller burst than it reports, as leases do.
struct SmallerBurst(SharedStore);

const SECOND: Quota = Quota::per_second(1_000);
const SMALLER: Quota = SECOND.burst(950);

impl Store for SmallerBurst {
    type Error = std::io::Error;
    type Future = std::future::Ready<std::io::Result<Decision>>;

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future {
        let charges: Vec<_> = charges
            .iter()
            .map(|charge| charge.with_quota(&SMALLER))
            .collect();
        let answer = self
            .0
            .apply(operation, &charges)
            .into_inner()
            .map(|decision| {
                let statuses = decision.statuses().iter().map(|status| {
                    let left = Left::new(status.remaining(), status.reset_after());
                    LimitStatus {
                        limit: SECOND.capacity(),
                        left,
                        ..*status
                    }
                });
                Decision::from_statuses(operation, decision.at(), statuses)
            });
        std::future::ready(answer)
    }
}

#[test]
fn larger_cost_waits_by_smaller_burst() {
    let Setting { store, clock, .. } = Setting::new();
    let cache = RefusalCache::with_clock(SmallerBurst(store.clone()), clock.clone());
    let key = client(1);
    let charges = |cost| [Charge::new("second", &SECOND, &key).cost(cost)];
    let check = |cost| block_on(cache.check(&charges(cost))).unwrap();
    assert!(check(900).is_allowed());
    assert_eq!(
        check(60).outcome(),
        Outcome::Refuse(Duration::from_millis(10))
    );
    let asked = store.calls.load(Ordering::Relaxed);
    assert_eq!(
        check(500).outcome(),
        Outcome::Refuse(Duration::from_millis(450))
    );
    assert_eq!(store.calls.load(Ordering::Relaxed), asked);
    assert_eq!(check(951).outcome(), Outcome::Never);
    clock.advance(Duration::from_millis(450));
    assert!(check(500).is_allowed());
}
