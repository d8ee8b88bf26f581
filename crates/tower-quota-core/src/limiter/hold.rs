//! Units that are held while work is done, and released when it ends.

use core::time::Duration;

use tokio::runtime::Handle;

use super::not_ready::NotReady;
use super::{AsKey, Limiter};
use crate::charge::Operation;
use crate::decision::Decision;
use crate::key::Key;
use crate::store::Store;

impl<S: Store + Clone> Limiter<S> {
    /// Takes one unit of every limit if they all fit now, and holds those of its concurrency limits.
    ///
    /// The hold is released when you drop it. The units of the other limits are used up, as by a
    /// [`check`](Self::check).
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
    /// A call that is dropped before it returns refunds all limits.
    ///
    /// # Errors
    /// [`NotReady::Refused`] when a unit does not fit. [`NotReady::Store`] when the store fails.
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

/// Units that are in use by one piece of work, returned by [`Limiter::hold`].
///
/// Dropping it releases them. A [`MemoryStore`](crate::MemoryStore) releases them at once, other stores in a task of
/// the tokio runtime. Without a runtime, or while it shuts down, they are released when they expire.
///
/// If the work may take longer than [`Quota::ttl`](crate::Quota::ttl), renew the hold a few times within that time.
#[derive(Debug)]
#[must_use = "a dropped hold is released"]
pub struct Hold<S: Store + Clone> {
    limiter: Limiter<S>,
    key: Key<'static>,
    runtime: Option<Handle>,
    decision: Decision,
}

impl<S: Store + Clone> Hold<S> {
    /// Extends the hold, so that it expires one [`ttl`](crate::Quota::ttl) from now.
    ///
    /// Returns `false` if some of its units are no longer held, because they have expired or the key was
    /// [reset](Limiter::reset). Other work may hold them then, so stop the work or take a new hold.
    ///
    /// # Errors
    /// The error of the store. The hold may be extended or not.
    pub async fn renew(&self) -> Result<bool, S::Error> {
        let taken_at = self.decision.at();
        let renewed = self.apply(Operation::Renew { taken_at }).await?;
        Ok(renewed.statuses().iter().all(|status| status.taken > 0))
    }

    /// Releases the hold, and waits until the store has done it.
    ///
    /// # Errors
    /// The error of the store. The hold then ends by its expiry, unless the store has released it.
    pub async fn release(mut self) -> Result<(), S::Error> {
        if let Some(refund) = self.decision.refund() {
            self.apply(refund).await?;
        }
        Ok(())
    }

    /// Applies an operation to the concurrency limits.
    fn apply(&self, operation: Operation) -> S::Future {
        let mut charges = self.limiter.charges(&self.key, 1, Duration::ZERO);
        charges.retain(|charge| charge.is_hold());
        self.limiter.store.apply(operation, &charges)
    }
}

impl<S: Store + Clone> Drop for Hold<S> {
    fn drop(&mut self) {
        if let Some(refund) = self.decision.refund() {
            // A store in memory has released when this returns. Others need the runtime to wait for their answer.
            let released = self.apply(refund);
            if let Some(runtime) = &self.runtime {
                drop(runtime.spawn(released));
            }
        }
    }
}
