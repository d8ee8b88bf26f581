//! Keeps holds while work runs.
//!
//! A keeper knows the units that this process holds in a store. One task with one timer renews all holds, takes units
//! again that the store has lost, and repeats failed releases until the hold would have expired. The renewals of a
//! tick leave together, so that a store in another process can send them in one call.

mod events;
mod ledger;
mod task;

use core::error::Error;
use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::sync::Arc;

use futures_util::task::AtomicWaker;
use tokio::runtime::Handle;
use tokio::time::Instant;

pub use self::events::HoldEvents;
pub use self::ledger::HoldId;
use self::ledger::Ledger;
use self::task::Driver;
use crate::charge::OwnedCharge;
use crate::store::Store;
use crate::sync::Lock;
use crate::time::Timestamp;

/// Renews the holds of a store. Clones share the holds.
pub struct HoldKeeper<S>(Arc<Keeper<S>>);

struct Keeper<S> {
    store: S,
    events: Arc<dyn HoldEvents>,
    ledger: Lock<Ledger>,
    /// Whether the task must look at the ledger again.
    is_woken: AtomicBool,
    waker: AtomicWaker,
}

impl<S: Store> HoldKeeper<S> {
    /// Creates a keeper without holds. The task starts with the first hold.
    pub fn new(store: S, events: Arc<dyn HoldEvents>) -> Self {
        Self(Arc::new(Keeper {
            store,
            events,
            ledger: Lock::new(Ledger::new(now())),
            is_woken: AtomicBool::new(false),
            waker: AtomicWaker::new(),
        }))
    }

    /// Renews the units of a charge until you release them, at most for the longest time.
    ///
    /// One task on the runtime of the first hold renews all holds. If the runtime ends, the next call of the keeper on
    /// another runtime starts the task there. Without a runtime, the hold expires after its `ttl`.
    pub fn hold(
        &self,
        charge: OwnedCharge,
        taken_at: Timestamp,
        longest: Option<Duration>,
    ) -> HoldId {
        let mut ledger = self.0.ledger.lock();
        let id = ledger.hold(charge, taken_at, longest, now());
        self.drive(ledger);
        id
    }

    /// Returns the instant that identifies the hold.
    #[must_use]
    pub fn taken_at(&self, id: HoldId) -> Option<Timestamp> {
        let ledger = self.0.ledger.lock();
        let taken_at = ledger.taken_at(id);
        self.drive(ledger);
        taken_at
    }

    /// Ends the renewals. Returns the instant of the units that you have to release.
    ///
    /// Without an instant, the keeper is taking the units again, and releases them after the answer.
    #[must_use = "the units stay held"]
    pub fn release(&self, id: HoldId) -> Option<Timestamp> {
        let mut ledger = self.0.ledger.lock();
        let taken_at = ledger.release(id, now());
        self.drive(ledger);
        taken_at
    }

    /// Repeats a failed release until it succeeds, or until the hold has expired.
    pub fn repeat_release(&self, charge: OwnedCharge, taken_at: Timestamp) {
        let mut ledger = self.0.ledger.lock();
        let is_full = ledger.repeat_release(charge, taken_at, now());
        self.drive(ledger);
        if is_full {
            self.0.events.dropped();
        }
    }

    pub(crate) fn failed(&self, error: &(dyn Error + 'static)) {
        self.0.events.failed(error);
    }

    /// Starts the task if calls are due and it does not run, or wakes the task for an earlier call.
    fn drive(&self, mut ledger: impl core::ops::DerefMut<Target = Ledger>) {
        let Some(due) = ledger.wakes_at() else {
            return;
        };
        if ledger.is_driven {
            let is_earlier = ledger.sleeps_until.is_none_or(|wakes| due < wakes);
            drop(ledger);
            if is_earlier {
                self.0.is_woken.store(true, Ordering::Release);
                self.0.waker.wake();
            }
        } else if let Ok(runtime) = Handle::try_current() {
            ledger.is_driven = true;
            drop(ledger);
            drop(runtime.spawn(task::run(Driver::new(&self.0))));
        }
    }
}

impl<S> Clone for HoldKeeper<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S> fmt::Debug for HoldKeeper<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HoldKeeper")
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "tokio's timer has this clock, and stores never see it"
)]
fn now() -> Instant {
    Instant::now()
}
