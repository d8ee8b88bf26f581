//! Holds, which are units in use until your work ends.

use core::time::Duration;

use tokio::runtime::Handle;

use super::not_ready::NotReady;
use super::{AsKey, Limiter};
use crate::charge::Operation;
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
        let key = self.key_of(key);
        let turn = self.turn(&key, 1, Duration::ZERO).await?;
        Ok(Hold {
            limiter: self.clone(),
            key,
            runtime: Handle::try_current().ok(),
            decision: turn.spend(),
        })
    }
}

/// Units that your work holds, returned by [`Limiter::hold`].
///
/// Drop the hold to release the units. A [`MemoryStore`](crate::MemoryStore) releases the units at once, and a task of the
/// tokio runtime releases the units in other stores. Without a runtime, the units expire after
/// [`Quota::ttl`](crate::Quota::ttl).
///
/// Renew the hold if your work may take longer than the `ttl`.
#[derive(Debug)]
#[must_use = "a dropped hold is released"]
pub struct Hold<S: Store + Clone> {
    limiter: Limiter<S>,
    key: Key<'static>,
    runtime: Option<Handle>,
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
        let taken_at = self.decision.at();
        let renewed = self.apply(Operation::Renew { taken_at }).await?;
        Ok(renewed.statuses().iter().all(|status| status.taken > 0))
    }

    /// Releases the hold, and waits for the answer of the store.
    ///
    /// # Errors
    /// Returns the error of the store. The units expire later, unless the store has released the units.
    pub async fn release(mut self) -> Result<(), S::Error> {
        if let Some(refund) = self.decision.refund() {
            self.apply(refund).await?;
        }
        Ok(())
    }

    fn apply(&self, operation: Operation) -> S::Future {
        let mut charges = self.limiter.charges(&self.key, 1, Duration::ZERO);
        charges.retain(|charge| charge.is_hold());
        self.limiter.store.apply(operation, &charges)
    }
}

impl<S: Store + Clone> Drop for Hold<S> {
    fn drop(&mut self) {
        if let Some(refund) = self.decision.refund() {
            // A store in memory releases the units at the first poll. Other stores need a task.
            let released = self.apply(refund);
            if let Some(runtime) = &self.runtime {
                drop(runtime.spawn(released));
            }
        }
    }
}
