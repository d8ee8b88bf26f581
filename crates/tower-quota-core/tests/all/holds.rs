//! Tests guards of concurrency limits, alone and behind a refusal cache.

use std::convert::Infallible;
use std::time::Duration;

use tower_quota_core::{
    Charge, ChargeMode, Hold, Key, Limiter, MemoryStore, NotReady, Operation, Penalty, Quota,
    RefusalCache, Store,
};
use tower_quota_testkit::{
    ManualClock, ModelStore, ScriptedAnswer, ScriptedStore, SharedStore, block_on,
};

const TTL: Duration = Duration::from_secs(10);

fn two() -> (ManualClock, Limiter<MemoryStore>) {
    let clock = ManualClock::default();
    let store = MemoryStore::with_clock(100, clock.clone());
    let limiter = Limiter::new(store, "hour", Quota::per_hour(10))
        .limit("holds", Quota::concurrent(2).ttl(TTL));
    (clock, limiter)
}

fn hold(limiter: &Limiter<MemoryStore>) -> Result<Hold<MemoryStore>, NotReady<Infallible>> {
    block_on(limiter.hold("ann"))
}

fn remaining(limiter: &Limiter<MemoryStore>) -> [u64; 2] {
    let Ok(decision) = limiter.peek("ann").into_inner();
    [0, 1].map(|limit| decision.statuses()[limit].remaining())
}

#[test]
fn dropped_hold_releases_only_the_hold() {
    let (_, limiter) = two();
    let first = hold(&limiter).unwrap();
    let second = hold(&limiter).unwrap();
    assert_eq!(remaining(&limiter), [8, 0]);
    let refused = hold(&limiter).unwrap_err();
    assert_eq!(
        refused.decision().unwrap().retry_after(),
        Some(Duration::from_secs(1))
    );
    drop(first);
    assert_eq!(remaining(&limiter), [8, 1]);
    block_on(second.release()).unwrap();
    assert_eq!(remaining(&limiter), [8, 2]);
}

#[test]
fn renewed_hold_outlives_its_ttl() {
    let (clock, limiter) = two();
    let held = hold(&limiter).unwrap();
    for _ in 0..3 {
        clock.advance(TTL * 2 / 3);
        assert!(block_on(held.renew()).unwrap());
    }
    clock.advance(TTL);
    assert!(!block_on(held.renew()).unwrap());
    let others = [hold(&limiter).unwrap(), hold(&limiter).unwrap()];
    // Other work holds the unit again.
    drop(held);
    assert_eq!(remaining(&limiter)[1], 0);
    drop(others);
    assert_eq!(remaining(&limiter)[1], 2);
}

#[tokio::test(start_paused = true)]
async fn hold_renews_itself_until_dropped() {
    let (clock, limiter) = two();
    let held = limiter.hold("ann").await.unwrap();
    let third = TTL / 3;
    let pass = async || {
        for _ in 0..9 {
            clock.advance(third);
            tokio::time::advance(third).await;
            // A task renews the hold.
            tokio::task::yield_now().await;
        }
    };
    pass().await;
    assert_eq!(remaining(&limiter), [9, 1]);
    let other = limiter.hold("ann").await.unwrap();
    assert!(limiter.hold("ann").await.is_err());
    drop(held);
    pass().await;
    assert_eq!(remaining(&limiter)[1], 1);
    drop(other);
    assert_eq!(remaining(&limiter)[1], 2);
}

#[test]
fn hold_of_turn_releases_all_its_units() {
    let (_, limiter) = two();
    let turn = block_on(limiter.turn("ann", 2, Duration::ZERO)).unwrap();
    let held = turn.hold();
    assert_eq!(remaining(&limiter), [8, 0]);
    assert!(block_on(held.renew()).unwrap());
    drop(held);
    assert_eq!(remaining(&limiter), [8, 2]);
}

#[tokio::test]
async fn hold_of_rate_limits_releases_nothing() {
    let store = ScriptedStore::new();
    let limiter = Limiter::new(store.clone(), "minute", Quota::per_minute(9));
    drop(limiter.hold("ann").await.unwrap());
    limiter.hold("ann").await.unwrap().release().await.unwrap();
    assert_eq!(store.operations().len(), 2);
}

#[test]
fn reset_hold_cannot_be_renewed() {
    let (clock, limiter) = two();
    let held = hold(&limiter).unwrap();
    let Ok(_) = limiter.reset("ann").into_inner();
    clock.advance(Duration::from_micros(1));
    assert!(!block_on(held.renew()).unwrap());
    let _other = hold(&limiter).unwrap();
    drop(held);
    assert_eq!(remaining(&limiter)[1], 1);
}

#[tokio::test]
async fn distant_store_gets_dropped_holds_back() {
    let store = ScriptedStore::new();
    let limiter = Limiter::new(store.clone(), "holds", Quota::concurrent(1));
    let held = limiter.hold("ann").await.unwrap();
    store.push(ScriptedAnswer::memory().held());
    std::thread::spawn(move || drop(held)).join().unwrap();
    store.release();
    tokio::task::yield_now().await;
    let asked = store.operations();
    assert!(matches!(asked[1].operation, Operation::Refund { .. }));
    // A call that is dropped before the answer releases the hold too.
    store.push(ScriptedAnswer::memory().held());
    let dropped = tokio::time::timeout(Duration::ZERO, limiter.hold("ann")).await;
    assert!(dropped.is_err());
    store.release();
    tokio::task::yield_now().await;
    assert!(limiter.hold("ann").await.is_ok());
}

#[tokio::test]
async fn failed_release_is_an_error() {
    let store = ScriptedStore::new();
    let limiter = Limiter::new(store.clone(), "holds", Quota::concurrent(1));
    let held = limiter.hold("ann").await.unwrap();
    store.push(ScriptedAnswer::error("down"));
    assert!(held.renew().await.is_err());
    store.push(ScriptedAnswer::error("down"));
    assert_eq!(held.release().await.unwrap_err().to_string(), "down");
    // The hold is released once.
    assert_eq!(store.operations().len(), 3);
}

/// Checks that a task may keep a hold, whatever the store's future is.
#[test]
fn hold_is_send_and_sync() {
    fn check<T: Send + Sync>() {}
    check::<Hold<tower_quota_core::BoxStore>>();
}

#[test]
fn refused_holds_are_not_remembered() {
    let clock = ManualClock::default();
    let store = ModelStore::with_clock(clock.clone());
    let cache = RefusalCache::with_clock(SharedStore(store.clone()), clock);
    let (quota, key) = (Quota::concurrent(1), Key::EVERYONE);
    let charge = [Charge::new("holds", &quota, &key)];
    let taken_at = block_on(cache.check(&charge)).unwrap().at();
    assert!(!block_on(cache.check(&charge)).unwrap().is_allowed());
    // Another process releases the hold.
    let Ok(_) = store
        .apply(Operation::Refund { taken_at }, &charge)
        .into_inner();
    assert!(block_on(cache.check(&charge)).unwrap().is_allowed());
    assert_eq!(cache.stats().answered, 0);
}

#[test]
fn refusals_from_memory_take_forced_units() {
    let clock = ManualClock::default();
    let store = ModelStore::with_clock(clock.clone());
    let cache = RefusalCache::with_clock(SharedStore(store), clock.clone());
    let (minute, key) = (Quota::per_minute(1).fixed_window(), Key::EVERYONE);
    let request = [
        Charge::new("minute", &minute, &key),
        Charge::new("attempts", &minute, &key).in_mode(ChargeMode::Forced),
    ];
    for _ in 0..6 {
        block_on(cache.check(&request)).unwrap();
    }
    assert!(cache.stats().answered >= 3);
    // The forced charges reach the store a tenth of a second later.
    clock.advance(Duration::from_millis(100));
    let decision = block_on(cache.check(&request)).unwrap();
    assert_eq!(decision.statuses()[1].debt(), 6);
}

#[test]
fn blocked_client_gets_no_hold_or_report() {
    let (_, limiter) = two();
    let (quota, penalty, key) = (Quota::concurrent(1), Penalty::after(1), Key::EVERYONE);
    let charge = Charge::new("strict", &quota, &key).penalty(&penalty);
    let check = |charge: Charge<'_>| {
        let Ok(decision) = limiter.store().check(&[charge]).into_inner();
        decision
    };
    let taken_at = check(charge).at();
    while check(charge).retry_after() <= Some(Duration::from_secs(1)) {}
    let Ok(_) = limiter
        .store()
        .apply(Operation::Refund { taken_at }, &[charge])
        .into_inner();
    for mode in [
        ChargeMode::Checked,
        ChargeMode::Reported,
        ChargeMode::ReportedUntilDebt,
    ] {
        assert!(!check(charge.in_mode(mode)).is_allowed(), "{mode:?}");
    }
    assert!(check(charge.in_mode(ChargeMode::Forced)).is_allowed());
}
