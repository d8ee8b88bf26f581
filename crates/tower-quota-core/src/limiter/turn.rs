//! Turns, which are waits for the instant at which a request fits.

use core::fmt;
use core::pin::Pin;
use core::time::Duration;

use super::hold::Hold;
use super::not_ready::NotReady;
use super::{AsKey, Limiter};
use crate::charge::Operation;
use crate::decision::Decision;
use crate::key::Key;
use crate::store::Store;

impl<S: Store + Clone> Limiter<S> {
    /// The default of [`max_wait`](Self::max_wait), 60 seconds.
    pub const DEFAULT_MAX_WAIT: Duration = Duration::from_secs(60);

    /// Sets the longest wait of [`until_ready`](Self::until_ready). Defaults to 60 seconds.
    ///
    /// The wait is also the queue of a leaky bucket, unless you set [`Quota::queue`](crate::Quota::queue).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tower_quota_core::{Limiter, MemoryStore, Quota};
    ///
    /// // Up to 300 calls wait for a turn, and the last call for a minute.
    /// let limiter = Limiter::new(MemoryStore::new(), "calls", Quota::per_second(5).leaky_bucket())
    ///     .max_wait(Duration::from_secs(60));
    /// # let _ = limiter;
    /// ```
    #[must_use]
    pub fn max_wait(mut self, longest: Duration) -> Self {
        self.longest_wait = longest;
        for limit in &mut self.limits {
            limit.quota = limit.quota.for_waits_of(longest);
        }
        self
    }

    /// Returns the longest wait of [`until_ready`](Self::until_ready).
    #[must_use]
    #[doc(hidden)]
    pub const fn longest_wait(&self) -> Duration {
        self.longest_wait
    }

    /// Waits until one unit fits into every limit, but no longer than [`max_wait`](Self::max_wait).
    ///
    /// The store charges your call at once. Buckets give turns to calls in order. Windows refuse calls as for
    /// [`check`](Self::check), and count a call when the call begins.
    ///
    /// # Dropped calls
    ///
    /// If you drop the call before the turn, the turn is refunded. A [`MemoryStore`](crate::MemoryStore) refunds at once, and
    /// a task of the tokio runtime refunds the turn in other stores. Without a runtime, the units come back with time.
    ///
    /// The turns of other calls never move. A leaky bucket gives only the last turn to the next call, and an earlier turn
    /// stays empty. At most `1 + t * rate` calls of one unit therefore start in any span of `t`. A token bucket or GCRA
    /// gives all dropped units back, so the same number of later calls may start together.
    ///
    /// # Errors
    /// Returns [`NotReady::Refused`] at once if the wait would be longer, and [`NotReady::Store`]
    /// if the store fails.
    ///
    /// # Panics
    /// Panics if the call has to wait without a tokio runtime with a timer.
    pub async fn until_ready<K: AsKey + ?Sized>(
        &self,
        key: &K,
    ) -> Result<Decision, NotReady<S::Error>> {
        self.until_n_ready(key, 1, self.longest_wait).await
    }

    /// Waits until `cost` units fit into every limit, but no longer than `longest`.
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
    /// Call [`Turn::spend`] to keep the charge.
    ///
    /// # Errors
    /// The same as [`until_ready`](Self::until_ready).
    pub async fn turn<K: AsKey + ?Sized>(
        &self,
        key: &K,
        cost: u64,
        longest: Duration,
    ) -> Result<Turn<S>, NotReady<S::Error>> {
        let key = self.key_of(key);
        let answer = self.apply(Operation::Check, &key, cost, longest);
        let mut turn = Turn::new(self, key, longest);
        let mut pending = Pending {
            turn: &turn,
            answer: Some(Box::pin(answer)),
        };
        let decision = pending.wait().await.map_err(NotReady::Store)?;
        drop(pending);
        if !decision.is_allowed() {
            return Err(NotReady::Refused(Box::new(decision)));
        }
        let wait = decision.wait();
        turn.take(decision);
        if !wait.is_zero() {
            #[expect(clippy::disallowed_methods, reason = "the caller asks to wait")]
            tokio::time::sleep(wait).await;
        }
        Ok(turn)
    }
}

/// A turn from [`Limiter::turn`]. If you drop an unspent turn, the store gets the units back.
#[must_use = "a dropped turn is refunded"]
pub struct Turn<S: Store + Clone> {
    /// The units of concurrency limits, which the limiter renews during the wait.
    pub(super) hold: Hold<S>,
    key: Key<'static>,
    longest: Duration,
    pub(super) decision: Option<Decision>,
}

impl<S: Store + Clone> Turn<S> {
    fn new(limiter: &Limiter<S>, key: Key<'static>, longest: Duration) -> Self {
        Self {
            hold: Hold::new(limiter),
            key,
            longest,
            decision: None,
        }
    }

    fn take(&mut self, decision: Decision) {
        if decision.is_allowed() {
            self.hold.keep(&self.key, &decision);
        }
        self.decision = Some(decision);
    }

    /// Keeps the charge, and returns the decision. The units of concurrency limits expire after their `ttl`.
    pub fn spend(mut self) -> Decision {
        self.hold.expire();
        self.decision.take().unwrap_or_default()
    }

    /// Keeps the charge, and holds the units of concurrency limits until you drop the hold.
    pub fn hold(mut self) -> Hold<S> {
        self.decision = None;
        let next = Hold::new(&self.hold.limiter);
        core::mem::replace(&mut self.hold, next)
    }
}

impl<S: Store + Clone> Drop for Turn<S> {
    fn drop(&mut self) {
        let Some(mut decision) = self.decision.take() else {
            return;
        };
        // The dropped hold releases the units of concurrency limits. A store in memory refunds the rest at once. Other
        // stores need a task. If the refund fails, the units come back with time.
        let limiter = &self.hold.limiter;
        let taken_at = decision.at();
        let mut charges = limiter.refunds(&self.key, &mut decision, self.longest);
        charges.retain(|charge| !charge.is_hold());
        if charges.is_empty() {
            return;
        }
        let refund = limiter
            .store
            .apply(Operation::Refund { taken_at }, &charges);
        if let Some(runtime) = &self.hold.runtime {
            drop(runtime.spawn(refund));
        }
    }
}

impl<S: Store + Clone> fmt::Debug for Turn<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn")
            .field("decision", &self.decision)
            .finish_non_exhaustive()
    }
}

/// The pending answer of the store, which may have charged the turn already.
struct Pending<'t, S: Store + Clone> {
    turn: &'t Turn<S>,
    answer: Option<Pin<Box<S::Future>>>,
}

impl<S: Store + Clone> Pending<'_, S> {
    async fn wait(&mut self) -> Result<Decision, S::Error> {
        let Some(answer) = &mut self.answer else {
            return Ok(Decision::default());
        };
        let answer = answer.as_mut().await;
        self.answer = None;
        answer
    }
}

impl<S: Store + Clone> Drop for Pending<'_, S> {
    fn drop(&mut self) {
        if let (Some(answer), Some(runtime)) = (self.answer.take(), &self.turn.hold.runtime) {
            let (key, longest) = (self.turn.key.clone(), self.turn.longest);
            let limiter = self.turn.hold.limiter.clone();
            drop(runtime.spawn(async move {
                if let Ok(decision) = answer.await {
                    Turn::new(&limiter, key, longest).take(decision);
                }
            }));
        }
    }
}
