//! Tests that no call records a refusal that another call in flight has ended.

use tower_quota_core::{Charge, Operation, Quota, RefusalCache, Store, Timestamp};
use tower_quota_testkit::{ScriptedAnswer, ScriptedStore, SharedStore, block_on};

use crate::{MINUTE, client, poll_once};

fn setting() -> (RefusalCache<SharedStore<ScriptedStore>>, ScriptedStore) {
    let store = ScriptedStore::new();
    (
        RefusalCache::with_clock(SharedStore(store.clone()), store.clock().clone()),
        store,
    )
}

/// An operation that is sent during a check that will be refused.
#[derive(Clone, Copy, Debug)]
enum Interference {
    Operation(Operation),
    OtherQuota,
}

#[test]
fn check_during_change_records_nothing() {
    let raised = Quota::per_minute(60);
    let refund = Operation::Refund {
        taken_at: Timestamp::EPOCH,
    };
    let surcharge = Operation::Surcharge {
        taken_at: Timestamp::EPOCH,
    };
    let operations =
        [Operation::Reset, Operation::Charge, surcharge, refund].map(Interference::Operation);
    for interference in operations.into_iter().chain([Interference::OtherQuota]) {
        // Send the check before the operation, or during it, and deliver the answers in either
        // order.
        for order in 0..4 {
            let (cache, store) = setting();
            let key = client(1);
            let charge = Charge::new("minute", &MINUTE, &key);
            block_on(cache.check(&[charge.cost(6)])).unwrap();
            store.set_default(ScriptedAnswer::memory().held());
            let check = || cache.check(&[charge]);
            let other = || match interference {
                Interference::Operation(operation) => cache.apply(operation, &[charge]),
                Interference::OtherQuota => cache.check(&[Charge::new("minute", &raised, &key)]),
            };
            let (checked, changed) = if order & 1 == 0 {
                let checked = check();
                (checked, other())
            } else {
                let changed = other();
                (check(), changed)
            };
            store.release();
            if order & 2 == 0 {
                block_on(checked).unwrap();
                block_on(changed).unwrap();
            } else {
                block_on(changed).unwrap();
                block_on(checked).unwrap();
            }
            store.set_default(ScriptedAnswer::memory());
            let asked = store.operations().len();
            block_on(cache.check(&[charge])).unwrap();
            // A check that was sent after the change of quota has converted the counter again, so
            // the cache remembers the refusal.
            let is_last = order & 1 == 1 && matches!(interference, Interference::OtherQuota);
            assert_eq!(
                store.operations().len() > asked,
                !is_last,
                "{interference:?}, order {order}"
            );
        }
    }
}

#[test]
fn refusal_is_forgotten_when_change_is_sent() {
    let (cache, store) = setting();
    let key = client(1);
    let charge = Charge::new("minute", &MINUTE, &key).cost(6);
    for _ in 0..2 {
        block_on(cache.check(&[charge])).unwrap();
    }
    store.set_default(ScriptedAnswer::memory().held());
    let reset = cache.apply(Operation::Reset, &[charge]);
    let asked = store.operations().len();
    poll_once(cache.check(&[charge]));
    assert_eq!(store.operations().len(), asked + 1);
    store.release();
    block_on(reset).unwrap();
}

#[test]
fn dropped_calls_leave_nothing_behind() {
    let (cache, store) = setting();
    let key = client(1);
    let charge = Charge::new("minute", &MINUTE, &key).cost(6);
    store.set_default(ScriptedAnswer::memory().held());
    drop(cache.check(&[charge]));
    drop(cache.apply(Operation::Reset, &[charge]));
    store.set_default(ScriptedAnswer::memory());
    for asked in [3, 4, 4] {
        block_on(cache.check(&[charge])).unwrap();
        assert_eq!(store.operations().len(), asked);
    }
}
