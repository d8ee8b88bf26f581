//! Holds, which are units in use until your work ends.

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use smallvec::SmallVec;
use tokio::runtime::Handle;

use super::not_ready::NotReady;
use super::{AsKey, Limiter};
use crate::charge::{Operation, OwnedCharge};
use crate::decision::Decision;
use crate::keeper::{HoldEvents, HoldId, HoldKeeper};
use crate::key::Key;
use crate::store::Store;

impl<S: Store + Clone> Limiter<S> {
    /// Takes one unit of every limit, and holds the units of concurrency limits until you drop the hold.
    ///
    /// The store charges the remaining limits as for a [`check`](Self::check).
    ///
    /// ```
    /// use tower_quota_core::{Limiter, MemoryStore, Quota};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let uploads = Limiter::new(MemoryStore::new(), "uploads", Quota::concurrent(1))
    ///     .limit("hour", Quota::per_hour(100));
    /// let hold = uploads.hold("ann").await?;
    /// assert!(uploads.hold("ann").await.is_err());
    /// drop(hold);
    /// assert!(uploads.hold("ann").await.is_ok());
    /// # Ok::<(), tower_quota_core::NotReady<core::convert::Infallible>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// If you drop the call before the answer, the store gets all units back.
    ///
    /// # Errors
    /// Returns [`NotReady::Refused`] if a unit does not fit, and [`NotReady::Store`] if the store
    /// fails.
    pub async fn hold<K: AsKey + ?Sized>(&self, key: &K) -> Result<Hold<S>, NotReady<S::Error>> {
        let turn = self.turn(key, 1, Duration::ZERO).await?;
        Ok(turn.hold())
    }

    /// Reports the failures of holds to your code, for logs and metrics. By default, the limiter reports no failures.
    ///
    /// Set the receiver before the first hold, because later holds are separate.
    ///
    /// ```
    /// use std::error::Error;
    /// use std::sync::Arc;
    /// use tower_quota_core::{HoldEvents, Limiter, MemoryStore, Name, Quota};
    ///
    /// struct Log;
    ///
    /// impl HoldEvents for Log {
    ///     fn failed(&self, error: &(dyn Error + 'static)) {
    ///         eprintln!("a renewal or a release failed: {error}");
    ///     }
    ///
    ///     fn lost(&self, limit: Name) -> bool {
    ///         eprintln!("the store has lost units of {limit:?}");
    ///         true
    ///     }
    /// }
    ///
    /// let uploads = Limiter::new(MemoryStore::new(), "uploads", Quota::concurrent(5))
    ///     .on_hold_events(Arc::new(Log));
    /// # let _ = uploads;
    /// ```
    #[must_use]
    pub fn on_hold_events(mut self, events: Arc<dyn HoldEvents>) -> Self {
        self.keeper = HoldKeeper::new(self.store.clone(), events);
        self
    }
}

/// Units that your work holds, returned by [`Limiter::hold`].
///
/// Drop the hold to release the units. A [`MemoryStore`](crate::MemoryStore) releases the units at once, and a task of the
/// tokio runtime releases the units in other stores. If the release fails, the limiter repeats the release until the units
/// would have expired.
///
/// A task of the tokio runtime, on tokio's timer, renews all holds of a limiter and its clones, before a third of the
/// [`ttl`](crate::Quota::ttl) has passed. If the store has lost the units, because of a restart, a failover or a pause of
/// your process, the task takes the units again, into debt if necessary. Without a runtime, the units expire after the
/// `ttl`, so [renew](Self::renew) the hold yourself. [`Limiter::on_hold_events`] reports failures to your code.
#[must_use = "a dropped hold is released"]
pub struct Hold<S: Store + Clone> {
    pub(super) limiter: Limiter<S>,
    held: SmallVec<[(HoldId, OwnedCharge); 1]>,
    pub(super) runtime: Option<Handle>,
}

impl<S: Store + Clone> Hold<S> {
    /// Returns a hold without units.
    pub(super) fn new(limiter: &Limiter<S>) -> Self {
        Self {
            limiter: limiter.clone(),
            held: SmallVec::new(),
            runtime: Handle::try_current().ok(),
        }
    }

    /// Holds the units of concurrency limits that a decision took.
    pub(super) fn keep(&mut self, key: &Key<'_>, decision: &Decision) {
        for charge in self.limiter.charges(key, 1, Duration::ZERO) {
            let status = decision.status(charge.name().as_str());
            let taken = status.map_or(0, |status| status.taken);
            if charge.is_hold() && taken > 0 {
                let charge = OwnedCharge::from(&charge.cost(taken));
                let keeper = &self.limiter.keeper;
                let id = keeper.hold(charge.clone(), decision.at(), None);
                self.held.push((id, charge));
            }
        }
    }

    /// Ends the renewals, so that the units return by their expiry.
    pub(super) fn expire(&mut self) {
        for (id, _) in self.held.drain(..) {
            let _ = self.limiter.keeper.release(id);
        }
    }

    /// Extends the hold, which then expires one [`ttl`](crate::Quota::ttl) from now.
    ///
    /// Returns `false` if units have expired, if you have [reset](Limiter::reset) the key, or if a full store has evicted it.
    /// Other work may hold the units now, so stop your work or take a new hold. On a tokio runtime, the hold takes the units
    /// again.
    ///
    /// # Errors
    /// Returns the error of the store, which may have extended the hold.
    pub async fn renew(&self) -> Result<bool, S::Error> {
        let mut is_held = true;
        for (id, charge) in &self.held {
            let Some(taken_at) = self.limiter.keeper.taken_at(*id) else {
                continue;
            };
            let renew = Operation::Renew { taken_at };
            let renewed = self.limiter.store.apply(renew, &[charge.as_charge()]);
            let renewed = renewed.await?;
            is_held &= renewed.statuses().iter().all(|status| status.taken > 0);
        }
        Ok(is_held)
    }

    /// Releases the hold, and waits for the answer of the store.
    ///
    /// # Errors
    /// Returns the error of the store. The limiter repeats the release until the units would have expired.
    pub async fn release(mut self) -> Result<(), S::Error> {
        self.end().await
    }

    /// Releases the units. Returns the future of the answer.
    fn end(&mut self) -> impl Future<Output = Result<(), S::Error>> + Send + use<S> {
        let keeper = self.limiter.keeper.clone();
        let mut calls: SmallVec<[_; 1]> = SmallVec::new();
        for (id, charge) in core::mem::take(&mut self.held) {
            if let Some(taken_at) = keeper.release(id) {
                let refund = Operation::Refund { taken_at };
                let call = self.limiter.store.apply(refund, &[charge.as_charge()]);
                calls.push((call, charge, taken_at));
            }
        }
        async move {
            let mut ended = Ok(());
            for (call, charge, taken_at) in calls {
                if let Err(error) = call.await {
                    keeper.failed(&error);
                    keeper.repeat_release(charge, taken_at);
                    ended = Err(error);
                }
            }
            ended
        }
    }
}

impl<S: Store + Clone> Drop for Hold<S> {
    fn drop(&mut self) {
        if self.held.is_empty() {
            return;
        }
        // A store in memory has released the units. Other stores need a task.
        let released = self.end();
        if let Some(runtime) = &self.runtime {
            drop(runtime.spawn(released));
        }
    }
}

impl<S: Store + Clone> fmt::Debug for Hold<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let charges = self.held.iter().map(|(_, charge)| charge);
        f.debug_list().entries(charges).finish()
    }
}
