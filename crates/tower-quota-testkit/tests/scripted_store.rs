//! Tests of the scripted store.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use tower_quota_core::{Charge, Key, Name, Operation, Quota, Store};
use tower_quota_testkit::{ScriptedAnswer, ScriptedStore, block_on};

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn remaining(store: &ScriptedStore, quota: &Quota) -> Result<u64, String> {
    let decided = block_on(store.check(&[Charge::new("minute", quota, &Key::EVERYONE)]));
    decided
        .map(|decision| decision.statuses()[0].remaining())
        .map_err(|error| error.to_string())
}

#[test]
fn script_is_followed_before_the_default() {
    let (store, quota) = (ScriptedStore::new(), Quota::per_minute(9));
    let status = block_on(
        store
            .memory()
            .check(&[Charge::new("minute", &quota, &Key::EVERYONE).cost(5)]),
    );
    let Ok(status) = status.map(|decision| decision.statuses()[0]);
    store.set_default(ScriptedAnswer::error("down"));
    store.push(ScriptedAnswer::statuses([status]));
    store.push(ScriptedAnswer::memory());
    assert_eq!(remaining(&store, &quota), Ok(4));
    assert_eq!(remaining(&store, &quota), Ok(3));
    assert_eq!(remaining(&store, &quota), Err("down".to_owned()));
    assert_eq!(remaining(&store, &quota), Err("down".to_owned()));
    store.set_default(ScriptedAnswer::memory());
    store.clock().advance(Duration::from_secs(60));
    assert_eq!(remaining(&store, &quota), Ok(8));
    assert_eq!(store.operations().len(), 5);
}

#[test]
fn operations_and_charges_are_recorded() {
    let (store, quota, user) = (
        ScriptedStore::new(),
        Quota::per_minute(9),
        Name::new("user"),
    );
    let clone = store.clone();
    {
        let (ann, everyone) = (Key::new(user, b"ann"), Key::EVERYONE);
        let charges = [
            Charge::new("a", &quota, &ann).cost(2),
            Charge::new("b", &quota, &everyone),
        ];
        block_on(clone.apply(Operation::Charge, &charges)).unwrap();
    }
    let operations = store.operations();
    assert_eq!(operations.len(), 1);
    assert_eq!(operations[0].operation, Operation::Charge);
    let charges: Vec<_> = operations[0]
        .charges
        .iter()
        .map(|charge| (charge.name, &charge.key, charge.units))
        .collect();
    let ann = Key::owned(user, "ann");
    assert_eq!(
        charges,
        [
            (Name::new("a"), &ann, 2),
            (Name::new("b"), &Key::EVERYONE, 1)
        ]
    );
}

#[test]
fn held_answer_waits_for_its_release() {
    let (store, quota) = (ScriptedStore::new(), Quota::per_minute(1));
    store.push(ScriptedAnswer::memory().held());
    let everyone = Key::EVERYONE;
    let charge = Charge::new("minute", &quota, &everyone);
    let mut first = pin!(store.check(&[charge]));
    // The store takes the charge before the delay, and delays no other answer.
    assert!(!block_on(store.check(&[charge])).unwrap().is_allowed());
    let wakes = Arc::<Wakes>::default();
    let waker = Waker::from(Arc::clone(&wakes));
    let mut context = Context::from_waker(&waker);
    assert!(first.as_mut().poll(&mut context).is_pending());
    assert_eq!((store.held(), wakes.0.load(Ordering::Relaxed)), (1, 0));
    store.release();
    assert_eq!((store.held(), wakes.0.load(Ordering::Relaxed)), (0, 1));
    let Poll::Ready(decision) = first.poll(&mut context) else {
        panic!("released, and not ready")
    };
    assert!(decision.unwrap().is_allowed());
}

#[test]
fn dropped_answer_is_not_held() {
    let (store, quota) = (ScriptedStore::new(), Quota::per_minute(1));
    store.set_default(ScriptedAnswer::error("late").held());
    let everyone = Key::EVERYONE;
    let charge = Charge::new("minute", &quota, &everyone);
    let (dropped, kept) = (store.check(&[charge]), store.check(&[charge]));
    drop(dropped);
    assert_eq!(store.held(), 1);
    store.release();
    assert_eq!(block_on(kept).unwrap_err().to_string(), "late");
}

#[test]
fn yielding_answer_is_ready_second() {
    let (store, quota) = (ScriptedStore::new(), Quota::per_minute(1));
    store.push(ScriptedAnswer::memory().yielding());
    let mut decision = pin!(store.check(&[Charge::new("minute", &quota, &Key::EVERYONE)]));
    let wakes = Arc::<Wakes>::default();
    let waker = Waker::from(Arc::clone(&wakes));
    let mut context = Context::from_waker(&waker);
    assert!(decision.as_mut().poll(&mut context).is_pending());
    assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
    assert!(decision.poll(&mut context).is_ready());
}
