//! Waiting for a turn, with a refund if the wait is dropped.

use core::fmt;
use core::pin::Pin;
use core::time::Duration;

use tokio::runtime::Handle;

use super::not_ready::NotReady;
use super::{AsKey, Limiter};
use crate::charge::Operation;
use crate::decision::Decision;
use crate::key::Key;
use crate::store::Store;

impl<S: Store + Clone> Limiter<S> {
    /// The default of [`max_wait`](Self::max_wait): 60 seconds.
    pub const DEFAULT_MAX_WAIT: Duration = Duration::from_secs(60);

    /// Sets the longest wait of [`until_ready`](Self::until_ready). Defaults to 60 seconds.
    ///
    /// The queue of a leaky bucket is as long as this wait, unless [`Quota::queue`](crate::Quota::queue) sets its length.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tower_quota_core::{Limiter, MemoryStore, Quota};
    ///
    /// // Up to 300 calls wait for their turns, the last of them for a minute.
    /// let limiter = Limiter::new(MemoryStore::new(), "calls", Quota::per_second(5).leaky_bucket())
    ///     .max_wait(Duration::from_secs(60));
    /// # let _ = limiter;
    /// ```
    #[must_use]
    pub fn max_wait(mut self, longest: Duration) -> Self {
        self.longest_wait = longest;
        for limit in core::iter::once(&mut self.first).chain(&mut self.others) {
            limit.quota = limit.quota.for_waits_of(longest);
        }
        self
    }

    /// Returns the longest wait of [`until_ready`](Self::until_ready).
    #[must_use]
    pub const fn longest_wait(&self) -> Duration {
        self.longest_wait
    }

    /// Waits until one unit fits into every limit, but no longer than [`max_wait`](Self::max_wait).
    ///
    /// The store charges the call at once and gives it a turn, in the order of the calls. Buckets give turns. Windows
    /// refuse as for [`check`](Self::check), and count a call when it begins.
    ///
    /// If you drop the call before its turn, the turn is refunded: at once in a [`MemoryStore`](crate::MemoryStore), in a
    /// task of the tokio runtime for other stores. Without a runtime the units come back with time.
    ///
    /// # Dropped calls
    ///
    /// The turns of other calls never move. A leaky bucket gives a dropped turn to the next call only if it was the last
    /// turn. An earlier turn stays empty, so that no two calls start together: in any span of `t`, at most `1 + t * rate`
    /// calls of one unit start. A token bucket or GCRA gives all dropped units back. As many later calls may then start
    /// together as were dropped.
    ///
    /// # Errors
    /// [`NotReady::Refused`] at once if the wait would be longer. [`NotReady::Store`] if the store fails.
    ///
    /// # Panics
    /// If the call has to wait and there is no tokio runtime with a timer.
    pub async fn until_ready<K: AsKey + ?Sized>(
        &self,
        key: &K,
    ) -> Result<Decision, NotReady<S::Error>> {
        self.until_n_ready(key, 1, self.longest_wait).await
    }

    /// Waits like [`until_ready`](Self::until_ready), but no longer than `longest`.
    ///
    /// # Errors
    /// The same as [`until_ready`](Self::until_ready).
    pub async fn until_ready_within<K: AsKey + ?Sized>(
        &self,
        key: &K,
        longest: Duration,
    ) -> Result<Decision, NotReady<S::Error>> {
        self.until_n_ready(key, 1, longest).await
    }

    /// Waits until `cost` units fit into every limit, at most this long.
    ///
    /// # Errors
    /// The same as [`until_ready`](Self::until_ready).
    pub async fn until_n_ready<K: AsKey + ?Sized>(
        &self,
        key: &K,
        cost: u64,
        longest: Duration,
    ) -> Result<Decision, NotReady<S::Error>> {
        self.turn(key, cost, longest).await.map(Turn::spend)
    }

    /// Waits like [`until_n_ready`](Self::until_n_ready), and returns the turn.
    ///
    /// [Spend](Turn::spend) the turn to keep the charge.
    ///
    /// # Errors
    /// The same as [`until_ready`](Self::until_ready).
    pub async fn turn<K: AsKey + ?Sized>(
        &self,
        key: &K,
        cost: u64,
        longest: Duration,
    ) -> Result<Turn<S>, NotReady<S::Error>> {
        let mut turn = {
            let key = self.key_of(key);
            let answer = self.apply(Operation::Check, &key, cost, longest);
            Turn::new(self.clone(), key, longest, answer)
        };
        turn.wait().await?;
        Ok(turn)
    }
}

/// A turn from [`Limiter::turn`], which is refunded if you drop it unspent.
#[must_use = "a dropped turn is refunded"]
pub struct Turn<S: Store + Clone> {
    limiter: Limiter<S>,
    key: Key<'static>,
    /// The longest wait that the call accepts.
    longest: Duration,
    runtime: Option<Handle>,
    /// The pending answer. The store may have taken the turn already.
    asked: Option<Pin<Box<S::Future>>>,
    taken: Option<Decision>,
}

impl<S: Store + Clone> Turn<S> {
    fn new(limiter: Limiter<S>, key: Key<'static>, longest: Duration, answer: S::Future) -> Self {
        let runtime = Handle::try_current().ok();
        Self {
            limiter,
            key,
            longest,
            runtime,
            asked: Some(Box::pin(answer)),
            taken: None,
        }
    }

    /// Keeps the charge, and returns the decision.
    pub fn spend(mut self) -> Decision {
        self.taken.take().unwrap_or_default()
    }

    /// Waits for the store's answer, and then for the turn.
    async fn wait(&mut self) -> Result<(), NotReady<S::Error>> {
        let mut wait = Duration::ZERO;
        if let Some(answer) = &mut self.asked {
            let answer = answer.as_mut().await;
            self.asked = None;
            let decision = answer.map_err(NotReady::Store)?;
            if !decision.is_allowed() {
                return Err(NotReady::Refused(Box::new(decision)));
            }
            wait = decision.wait();
            self.taken = Some(decision);
        }
        if !wait.is_zero() {
            #[expect(clippy::disallowed_methods, reason = "the caller asks to wait")]
            tokio::time::sleep(wait).await;
        }
        Ok(())
    }
}

impl<S: Store + Clone> Drop for Turn<S> {
    fn drop(&mut self) {
        if let Some(decision) = self.taken.take() {
            // Only a store in memory has refunded by now.
            let refund = self
                .limiter
                .refund_waiting(&self.key, decision, self.longest);
            if let Some(runtime) = &self.runtime {
                drop(runtime.spawn(refund));
            }
        }
        if let (Some(answer), Some(runtime)) = (self.asked.take(), &self.runtime) {
            let (limiter, key, longest) = (self.limiter.clone(), self.key.clone(), self.longest);
            drop(runtime.spawn(async move {
                if let Ok(decision) = answer.await {
                    // After an error, the turn comes back with time.
                    let _ = limiter.refund_waiting(&key, decision, longest).await;
                }
            }));
        }
    }
}

impl<S: Store + Clone> fmt::Debug for Turn<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn")
            .field("decision", &self.taken)
            .finish_non_exhaustive()
    }
}
