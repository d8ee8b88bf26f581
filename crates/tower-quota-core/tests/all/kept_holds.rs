//! Tests how holds survive the loss of their store, failures and many neighbours.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tower_quota_core::{Hold, Limiter, Operation, Quota};
use tower_quota_testkit::{ScriptedAnswer, ScriptedStore};

pub(super) const TTL: Duration = Duration::from_secs(12);
pub(super) const TICK: Duration = Duration::from_secs(1);

pub(super) fn holds_of(units: u64) -> (ScriptedStore, Limiter<ScriptedStore>) {
    let store = ScriptedStore::new();
    let limiter = Limiter::new(store.clone(), "holds", Quota::concurrent(units).ttl(TTL));
    (store, limiter)
}

pub(super) fn held_units(store: &ScriptedStore, limiter: &Limiter<ScriptedStore>) -> u64 {
    let limit = Limiter::new(
        store.memory().clone(),
        "holds",
        Quota::concurrent(10_000).ttl(TTL),
    );
    let key = limiter.key_of("ann");
    let Ok(decision) = limit.peek(&key).into_inner();
    10_000 - decision.statuses()[0].remaining()
}

/// Loses all data of the store.
pub(super) fn lose(store: &ScriptedStore, limiter: &Limiter<ScriptedStore>) {
    let limit = Limiter::new(store.memory().clone(), "holds", Quota::concurrent(1));
    let Ok(_) = limit.reset(&limiter.key_of("ann")).into_inner();
}

pub(super) async fn pass(store: &ScriptedStore, time: Duration) {
    store.clock().advance(time);
    tokio::time::advance(time).await;
    for _ in 0..4 {
        tokio::task::yield_now().await;
    }
}

pub(super) async fn hold(limiter: &Limiter<ScriptedStore>) -> Hold<ScriptedStore> {
    let held = limiter.hold("ann").await.unwrap();
    // The task begins.
    tokio::task::yield_now().await;
    held
}

#[tokio::test(start_paused = true)]
async fn lost_hold_is_taken_again() {
    let (store, limiter) = holds_of(2);
    let held = hold(&limiter).await;
    lose(&store, &limiter);
    assert_eq!(held_units(&store, &limiter), 0);
    for _ in 0..4 {
        pass(&store, TICK).await;
    }
    assert_eq!(held_units(&store, &limiter), 1);
    // The new units are renewed and released under their own instant.
    for _ in 0..30 {
        pass(&store, TICK).await;
    }
    assert_eq!(held_units(&store, &limiter), 1);
    drop(held);
    assert_eq!(held_units(&store, &limiter), 0);
}

#[tokio::test(start_paused = true)]
async fn lost_holds_go_into_debt() {
    let (store, limiter) = holds_of(2);
    let holds = [hold(&limiter).await, hold(&limiter).await];
    pass(&store, TICK).await;
    lose(&store, &limiter);
    let others = [hold(&limiter).await, hold(&limiter).await];
    for _ in 0..4 {
        pass(&store, TICK).await;
    }
    assert_eq!(held_units(&store, &limiter), 4);
    drop(others);
    assert!(limiter.hold("ann").await.is_err());
    drop(holds);
    assert_eq!(held_units(&store, &limiter), 0);
}

#[tokio::test(start_paused = true)]
async fn hold_survives_pause_of_process() {
    let (store, limiter) = holds_of(1);
    let held = hold(&limiter).await;
    pass(&store, TTL * 2).await;
    assert_eq!(held_units(&store, &limiter), 1);
    held.release().await.unwrap();
    assert_eq!(held_units(&store, &limiter), 0);
}

#[tokio::test(start_paused = true)]
async fn release_follows_units_taken_again() {
    let (store, limiter) = holds_of(1);
    let held = hold(&limiter).await;
    lose(&store, &limiter);
    store.push(ScriptedAnswer::memory());
    store.push(ScriptedAnswer::memory().held());
    for _ in 0..4 {
        pass(&store, TICK).await;
    }
    assert_eq!((store.held(), held_units(&store, &limiter)), (1, 1));
    drop(held);
    store.release();
    pass(&store, Duration::ZERO).await;
    assert_eq!(held_units(&store, &limiter), 0);
    let calls = store.operations().len();
    pass(&store, TTL).await;
    assert_eq!(store.operations().len(), calls);
}

#[tokio::test(start_paused = true)]
async fn lost_answer_of_retake_takes_units_once() {
    let (store, limiter) = holds_of(2);
    let held = hold(&limiter).await;
    lose(&store, &limiter);
    store.push(ScriptedAnswer::memory());
    store.push(ScriptedAnswer::memory().held());
    for _ in 0..30 {
        pass(&store, TICK).await;
        assert!(held_units(&store, &limiter) <= 1);
    }
    assert_eq!(held_units(&store, &limiter), 1);
    drop(held);
    assert_eq!(held_units(&store, &limiter), 0);
}

#[tokio::test(start_paused = true)]
async fn release_follows_lost_answer_of_retake() {
    let (store, limiter) = holds_of(2);
    let held = hold(&limiter).await;
    lose(&store, &limiter);
    store.push(ScriptedAnswer::memory());
    store.push(ScriptedAnswer::memory().held());
    for _ in 0..4 {
        pass(&store, TICK).await;
    }
    assert_eq!((store.held(), held_units(&store, &limiter)), (1, 1));
    drop(held);
    pass(&store, TTL / 3).await;
    assert_eq!(held_units(&store, &limiter), 0);
}

#[tokio::test(start_paused = true)]
async fn failed_release_is_repeated_until_it_succeeds() {
    let (store, limiter) = holds_of(1);
    let held = hold(&limiter).await;
    store.set_default(ScriptedAnswer::error("down"));
    drop(held);
    for _ in 0..8 {
        pass(&store, Duration::from_millis(500)).await;
    }
    assert_eq!(held_units(&store, &limiter), 1);
    store.set_default(ScriptedAnswer::memory());
    pass(&store, Duration::from_millis(500)).await;
    assert_eq!(held_units(&store, &limiter), 0);
    assert!(limiter.hold("ann").await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn failed_release_ends_with_its_expiry() {
    let (store, limiter) = holds_of(1);
    let held = hold(&limiter).await;
    store.set_default(ScriptedAnswer::error("down"));
    drop(held);
    for _ in 0..24 {
        pass(&store, Duration::from_millis(500)).await;
    }
    let calls = store.operations().len();
    pass(&store, TTL).await;
    assert_eq!(store.operations().len(), calls);
}

#[tokio::test(start_paused = true)]
async fn failed_renewal_is_repeated_before_expiry() {
    let (store, limiter) = holds_of(1);
    let _held = hold(&limiter).await;
    for _ in 0..3 {
        store.push(ScriptedAnswer::error("down"));
    }
    for _ in 0..24 {
        pass(&store, TICK).await;
    }
    let renewals = store.operations();
    let is_renewal = |operation| matches!(operation, Operation::Renew { .. });
    assert!(
        renewals[1..].iter().all(|call| is_renewal(call.operation)),
        "{renewals:?}"
    );
    assert_eq!(held_units(&store, &limiter), 1);
}

#[tokio::test(start_paused = true)]
async fn holds_share_one_task_and_leave_together() {
    let (store, limiter) = holds_of(10_000);
    let mut holds = Vec::new();
    for _ in 0..1_000 {
        holds.push(hold(&limiter).await);
        store.clock().advance(Duration::from_micros(1));
        tokio::time::advance(Duration::from_micros(100)).await;
    }
    let tasks = tokio::runtime::Handle::current()
        .metrics()
        .num_alive_tasks();
    assert_eq!(tasks, 1);
    let calls = store.operations().len();
    pass(&store, TTL / 3).await;
    for _ in 0..32 {
        tokio::task::yield_now().await;
    }
    assert_eq!(store.operations().len() - calls, 1_000);
    drop(holds);
    assert_eq!(held_units(&store, &limiter), 0);
    pass(&store, TTL).await;
    for _ in 0..32 {
        tokio::task::yield_now().await;
    }
    let tasks = tokio::runtime::Handle::current()
        .metrics()
        .num_alive_tasks();
    assert_eq!(tasks, 0);
}

#[tokio::test(start_paused = true)]
async fn outage_gets_one_call_at_a_time() {
    let (store, limiter) = holds_of(10_000);
    let mut holds = Vec::new();
    for _ in 0..2_000 {
        holds.push(hold(&limiter).await);
    }
    store.set_default(ScriptedAnswer::error("down"));
    let kept = holds.split_off(1_000);
    drop(holds);
    for _ in 0..8 {
        pass(&store, Duration::from_millis(500)).await;
    }
    let calls = store.operations().len();
    for _ in 0..4 {
        pass(&store, Duration::from_millis(500)).await;
    }
    assert!(store.operations().len() - calls <= 4);
    store.set_default(ScriptedAnswer::memory());
    pass(&store, Duration::from_millis(500)).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(held_units(&store, &limiter), 1_000);
    drop(kept);
}

#[tokio::test(start_paused = true)]
async fn unanswered_renewals_are_bounded() {
    let (store, limiter) = holds_of(10_000);
    let mut holds = Vec::new();
    for _ in 0..2_000 {
        holds.push(hold(&limiter).await);
    }
    store.set_default(ScriptedAnswer::memory().held());
    pass(&store, TTL / 3).await;
    assert_eq!(store.held(), 256);
    // A request does not wait for renewals.
    store.push(ScriptedAnswer::memory());
    assert!(limiter.hold("ann").await.is_ok());
    store.set_default(ScriptedAnswer::memory());
    drop(holds);
}

/// Returns a runtime that ends when it is dropped.
pub(super) fn runtime() -> Runtime {
    let mut builder = Builder::new_current_thread();
    builder.enable_time().start_paused(true).build().unwrap()
}

/// Takes two holds on a runtime, and uses the second hold on another runtime.
fn kept_after_use(
    use_hold: impl AsyncFnOnce(Hold<ScriptedStore>) -> Option<Hold<ScriptedStore>>,
    kept: u64,
) {
    let (store, limiter) = holds_of(5);
    let first = runtime();
    let holds = first.block_on(async { (hold(&limiter).await, hold(&limiter).await) });
    drop(first);
    runtime().block_on(async {
        let used = use_hold(holds.1).await;
        for _ in 0..30 {
            pass(&store, TICK).await;
        }
        assert_eq!(held_units(&store, &limiter), kept);
        drop((holds.0, used));
    });
}

#[test]
fn renewal_on_another_runtime_keeps_all_holds() {
    let renew = async |hold: Hold<ScriptedStore>| {
        assert!(hold.renew().await.unwrap());
        Some(hold)
    };
    kept_after_use(renew, 2);
}

#[test]
fn release_on_another_runtime_keeps_other_holds() {
    let release = async |hold: Hold<ScriptedStore>| {
        hold.release().await.unwrap();
        None
    };
    kept_after_use(release, 1);
}

#[test]
fn holds_survive_end_of_their_runtime() {
    let (store, limiter) = holds_of(5);
    let first = runtime();
    let held = first.block_on(hold(&limiter));
    drop(first);
    let second = runtime();
    second.block_on(async {
        let other = hold(&limiter).await;
        for _ in 0..30 {
            pass(&store, TICK).await;
        }
        assert_eq!(held_units(&store, &limiter), 2);
        drop((held, other));
        pass(&store, TICK).await;
    });
    assert_eq!(held_units(&store, &limiter), 0);
}
