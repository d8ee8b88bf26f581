//! Tests the keeper of holds when stores fail in part, runtimes end, and turns wait.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tower_quota_core::{
    Charge, HoldEvents, HoldId, HoldKeeper, Key, Limiter, Name, Operation, OwnedCharge, Quota,
    Store,
};
use tower_quota_testkit::{ScriptedAnswer, ScriptedStore};

use crate::kept_holds::{TICK, TTL, held_units, hold, holds_of, lose, pass, runtime};

/// A store that fails for one key.
#[derive(Clone)]
struct OneKeyFails {
    store: ScriptedStore,
    key: Key<'static>,
}

impl Store for OneKeyFails {
    type Error = <ScriptedStore as Store>::Error;
    type Future = <ScriptedStore as Store>::Future;

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future {
        let is_check = operation == Operation::Check;
        if !is_check && charges.iter().any(|charge| *charge.key() == self.key) {
            self.store.push(ScriptedAnswer::error("down"));
        }
        self.store.apply(operation, charges)
    }
}

/// Counts the reports of a keeper.
#[derive(Default)]
struct Reports {
    outlived: AtomicUsize,
}

impl HoldEvents for Reports {
    fn outlived(&self, _: Name, longest: Duration) {
        assert_eq!(longest, TICK * 20);
        self.outlived.fetch_add(1, Ordering::SeqCst);
    }
}

struct Kept {
    store: ScriptedStore,
    limiter: Limiter<ScriptedStore>,
    keeper: HoldKeeper<ScriptedStore>,
    reports: Arc<Reports>,
    hold: HoldId,
}

/// Takes a hold that the keeper renews for `longest`.
async fn kept_for(longest: Duration) -> Kept {
    let (store, limiter) = holds_of(5);
    let reports = Arc::new(Reports::default());
    let keeper = HoldKeeper::new(store.clone(), Arc::clone(&reports) as Arc<dyn HoldEvents>);
    let taken_at = limiter.check("ann").await.unwrap().at();
    let (quota, key) = (Quota::concurrent(5).ttl(TTL), limiter.key_of("ann"));
    let charge = OwnedCharge::from(&Charge::new("holds", &quota, &key));
    let hold = keeper.hold(charge, taken_at, Some(longest));
    tokio::task::yield_now().await;
    Kept {
        store,
        limiter,
        keeper,
        reports,
        hold,
    }
}

#[test]
fn holds_survive_end_of_runtime_before_first_poll() {
    let (store, limiter) = holds_of(5);
    let first = runtime();
    let held = first.block_on(limiter.hold("ann")).unwrap();
    drop(first);
    runtime().block_on(async {
        let other = hold(&limiter).await;
        for _ in 0..30 {
            pass(&store, TICK).await;
        }
        assert_eq!(held_units(&store, &limiter), 2);
        drop((held, other));
    });
}

#[test]
fn release_under_way_survives_end_of_runtime() {
    let (store, limiter) = holds_of(5);
    let first = runtime();
    first.block_on(async {
        let held = hold(&limiter).await;
        store.push(ScriptedAnswer::error("down"));
        store.push(ScriptedAnswer::error("down").held());
        drop(held);
        pass(&store, Duration::ZERO).await;
        pass(&store, Duration::from_millis(500)).await;
        assert_eq!(store.held(), 1);
    });
    drop(first);
    runtime().block_on(async {
        let _other = hold(&limiter).await;
        pass(&store, TICK).await;
        assert_eq!(held_units(&store, &limiter), 1);
    });
}

#[tokio::test(start_paused = true)]
async fn failed_releases_delay_no_renewal() {
    let (store, limiter) = holds_of(5);
    let half = OneKeyFails {
        store: store.clone(),
        key: limiter.key_of("bob"),
    };
    let shared = Limiter::new(half, "holds", Quota::concurrent(50).ttl(TTL));
    let _held = shared.hold("ann").await.unwrap();
    let mut failing = Vec::new();
    for _ in 0..8 {
        failing.push(shared.hold("bob").await.unwrap());
    }
    drop(failing);
    for _ in 0..11 {
        pass(&store, TICK).await;
    }
    let renewed = store.operations();
    let is_renewal = |operation| matches!(operation, Operation::Renew { .. });
    assert!(renewed.iter().any(|call| is_renewal(call.operation)));
    for _ in 0..11 {
        pass(&store, TICK).await;
    }
    assert_eq!(held_units(&store, &limiter), 1);
}

#[tokio::test(start_paused = true)]
async fn lost_hold_is_released_after_longest_time() {
    let kept = kept_for(TICK * 20).await;
    lose(&kept.store, &kept.limiter);
    kept.store.push(ScriptedAnswer::memory());
    kept.store.set_default(ScriptedAnswer::error("down"));
    for _ in 0..24 {
        pass(&kept.store, TICK).await;
    }
    let calls = kept.store.operations().len();
    pass(&kept.store, TTL).await;
    assert_eq!(kept.store.operations().len(), calls);
    assert!(kept.keeper.release(kept.hold).is_some());
}

#[tokio::test(start_paused = true)]
async fn outlived_hold_is_reported_at_its_end() {
    let kept = kept_for(TICK * 20).await;
    for _ in 0..19 {
        pass(&kept.store, TICK).await;
        assert_eq!(kept.reports.outlived.load(Ordering::SeqCst), 0);
    }
    for _ in 0..20 {
        pass(&kept.store, TICK).await;
    }
    assert_eq!(kept.reports.outlived.load(Ordering::SeqCst), 1);
    assert_eq!(held_units(&kept.store, &kept.limiter), 0);
}

#[tokio::test(start_paused = true)]
async fn waiting_turn_keeps_its_units() {
    let (store, limiter) = holds_of(5);
    let queued = limiter
        .clone()
        .limit("calls", Quota::per_minute(1).leaky_bucket());
    let first = queued.hold("ann").await.unwrap();
    let waiting = queued.clone();
    let second = tokio::spawn(async move {
        waiting
            .turn("ann", 1, Duration::from_secs(60))
            .await
            .unwrap()
            .hold()
    });
    for _ in 0..50 {
        pass(&store, TICK).await;
    }
    assert_eq!(held_units(&store, &limiter), 2);
    second.abort();
    pass(&store, TICK).await;
    assert_eq!(held_units(&store, &limiter), 1);
    drop(first);
    assert_eq!(held_units(&store, &limiter), 0);
}

#[tokio::test(start_paused = true)]
async fn failed_refund_of_turn_with_hold_is_repeated() {
    let (store, limiter) = holds_of(5);
    let turn = limiter.turn("ann", 1, Duration::ZERO).await.unwrap();
    store.set_default(ScriptedAnswer::error("down"));
    drop(turn);
    pass(&store, Duration::ZERO).await;
    store.set_default(ScriptedAnswer::memory());
    pass(&store, TICK).await;
    assert_eq!(held_units(&store, &limiter), 0);
}

#[tokio::test(start_paused = true)]
async fn failed_retake_is_repeated_within_ttl() {
    let (store, limiter) = holds_of(5);
    let _held = hold(&limiter).await;
    lose(&store, &limiter);
    store.push(ScriptedAnswer::memory());
    for _ in 0..3 {
        store.push(ScriptedAnswer::error("down"));
    }
    for _ in 0..11 {
        pass(&store, TICK).await;
    }
    assert_eq!(held_units(&store, &limiter), 1);
}
