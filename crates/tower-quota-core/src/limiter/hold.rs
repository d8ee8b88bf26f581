//! Holds, which are units in use until your work ends.

use core::time::Duration;

use smallvec::SmallVec;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use super::not_ready::NotReady;
use super::turn::Turn;
use super::{AsKey, Limiter};
use crate::charge::{Charge, Operation};
use crate::decision::Decision;
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
        self.turn(key, 1, Duration::ZERO).await.map(Turn::hold)
    }
}

impl<S: Store + Clone> Turn<S> {
    /// Keeps the charge, and holds the units of concurrency limits until you drop the hold.
    pub fn hold(self) -> Hold<S> {
        let (limiter, key) = (self.limiter.clone(), self.key.clone());
        let mut held = Held {
            limiter,
            key,
            decision: self.spend(),
        };
        if held.charges().is_empty() {
            // Without concurrency limits, a dropped hold has no units to release.
            let _ = held.decision.refund();
        }
        let runtime = Handle::try_current().ok();
        let renewal = runtime
            .as_ref()
            .zip(held.shortest_ttl())
            .map(|(runtime, ttl)| {
                runtime
                    .spawn(held.clone().renew_each(ttl / 3))
                    .abort_handle()
            });
        Hold {
            held,
            runtime,
            renewal,
        }
    }
}

/// Units that your work holds, returned by [`Limiter::hold`].
///
/// Drop the hold to release the units. A [`MemoryStore`](crate::MemoryStore) releases the units at once, and a task of the
/// tokio runtime releases the units in other stores.
///
/// A task of the tokio runtime, on tokio's timer, renews the hold every third of the [`ttl`](crate::Quota::ttl). Without a
/// runtime, the units expire after the `ttl`, so [renew](Self::renew) the hold yourself.
#[derive(Debug)]
#[must_use = "a dropped hold is released"]
pub struct Hold<S: Store + Clone> {
    held: Held<S>,
    runtime: Option<Handle>,
    renewal: Option<AbortHandle>,
}

#[derive(Clone, Debug)]
struct Held<S> {
    limiter: Limiter<S>,
    key: Key<'static>,
    decision: Decision,
}

impl<S: Store + Clone> Hold<S> {
    /// Extends the hold, which then expires one [`ttl`](crate::Quota::ttl) from now.
    ///
    /// Returns `false` if units have expired, if you have [reset](Limiter::reset) the key, or if a full store has evicted it. Other work may hold the units
    /// now, so stop your work or take a new hold.
    ///
    /// # Errors
    /// Returns the error of the store, which may have extended the hold.
    pub async fn renew(&self) -> Result<bool, S::Error> {
        let renewed = self.held.renew().await?;
        Ok(renewed.statuses().iter().all(|status| status.taken > 0))
    }

    /// Releases the hold, and waits for the answer of the store.
    ///
    /// # Errors
    /// Returns the error of the store. The units expire later, unless the store has released the units.
    pub async fn release(mut self) -> Result<(), S::Error> {
        if let Some(refund) = self.held.decision.refund() {
            self.held.apply(refund).await?;
        }
        Ok(())
    }
}

impl<S: Store + Clone> Held<S> {
    fn charges(&self) -> SmallVec<[Charge<'_>; 4]> {
        let taken = |charge: &Charge<'_>| {
            let status = self.decision.status(charge.name().as_str());
            status.map_or(0, |status| status.taken)
        };
        let mut charges = self.limiter.charges(&self.key, 1, Duration::ZERO);
        charges.retain(|charge| charge.is_hold() && taken(charge) > 0);
        for charge in &mut charges {
            *charge = charge.cost(taken(charge));
        }
        charges
    }

    fn apply(&self, operation: Operation) -> S::Future {
        self.limiter.store.apply(operation, &self.charges())
    }

    fn shortest_ttl(&self) -> Option<Duration> {
        let charges = self.charges();
        charges.iter().map(|charge| charge.quota().period()).min()
    }

    fn renew(&self) -> S::Future {
        let taken_at = self.decision.at();
        self.apply(Operation::Renew { taken_at })
    }

    async fn renew_each(self, pause: Duration) {
        loop {
            #[expect(clippy::disallowed_methods, reason = "a renewal is waited for")]
            tokio::time::sleep(pause).await;
            // The next renewal repeats a failed renewal in time.
            let _ = self.renew().await;
        }
    }
}

impl<S: Store + Clone> Drop for Hold<S> {
    fn drop(&mut self) {
        if let Some(renewal) = &self.renewal {
            renewal.abort();
        }
        let Some(refund) = self.held.decision.refund() else {
            return;
        };
        // A store in memory releases the units at the first poll. Other stores need a task.
        let released = self.held.apply(refund);
        if let Some(runtime) = &self.runtime {
            drop(runtime.spawn(released));
        }
    }
}
