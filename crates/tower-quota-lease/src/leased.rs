//! The store that takes leases.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::time::Duration;
use std::sync::Arc;

use smallvec::SmallVec;
use tower_quota_core::{
    Charge, Clock, Decision, Left, LimitStatus, MonotonicClock, Operation, Outcome, Store,
};

use crate::decide::Request;
use crate::options::LeaseOptions;
use crate::plan::Plan;
use crate::shared::Shared;
use crate::stats::LeaseStats;

/// A store that decides hot clients from leases, and all others by the store inside. Clones share the leases.
///
/// All instances together never exceed the quota: [the crate's page](crate) says why, and what it costs.
///
/// ```
/// use tower_quota_core::{Charge, Key, MemoryStore, Name, Quota, Store};
/// use tower_quota_lease::Leased;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let store = Leased::new(MemoryStore::new());
/// let (quota, ann) = (Quota::per_second(1_000), Key::owned(Name::new("user"), "ann"));
/// for _ in 0..500 {
///     assert!(store.check(&[Charge::new("requests", &quota, &ann)]).await?.is_allowed());
///     // A lease is fetched in the background.
///     tokio::task::yield_now().await;
/// }
/// assert!(store.stats().by_lease > 250);
/// # Ok::<(), core::convert::Infallible>(())
/// # }).unwrap();
/// ```
pub struct Leased<S, C = MonotonicClock> {
    shared: Arc<Shared<S, C>>,
}

impl<S: Store> Leased<S> {
    /// Creates a store that takes leases from another, with the default options.
    #[must_use]
    pub fn new(store: S) -> Self {
        Self::with_options(store, LeaseOptions::default())
    }

    /// Creates a store that takes leases from another.
    #[must_use]
    pub fn with_options(store: S, options: LeaseOptions) -> Self {
        Self::with_clock(store, options, MonotonicClock::new())
    }
}

impl<S: Store, C: Clock> Leased<S, C> {
    /// Creates a store with its own clock, for tests and simulations.
    ///
    /// The clock must run as tokio's does, which ends the leases: in a paused runtime, take its time.
    #[must_use]
    pub fn with_clock(store: S, options: LeaseOptions, clock: C) -> Self {
        Self {
            shared: Arc::new(Shared::new(store, clock, options)),
        }
    }

    /// Returns figures of the leases: what they have saved, and what they hold.
    #[must_use]
    pub fn stats(&self) -> LeaseStats {
        self.shared.stats()
    }

    /// Returns the store inside.
    #[must_use]
    pub fn store(&self) -> &S {
        &self.shared.store
    }

    fn check(&self, charges: &[Charge<'_>]) -> <Self as Store>::Future {
        let mut request = Request::new(&self.shared, charges);
        request.take(&self.shared, charges);
        if let Some(is_admitted) = request.outcome() {
            let decision = request.conclude(&self.shared, is_admitted);
            return Box::pin(core::future::ready(Ok(decision)));
        }
        let asked = request.begin_call(&self.shared, charges);
        let answer = self.shared.store.check(&asked);
        drop(asked);
        let mut held = Held {
            shared: Arc::clone(&self.shared),
            request,
            is_complete: false,
        };
        Box::pin(async move {
            let answer = answer.await;
            // From here on, what the request holds is spent or put back.
            held.is_complete = true;
            match answer {
                Ok(answer) => Ok(held.request.complete(&held.shared, &answer)),
                Err(error) => {
                    held.request.abandon(&held.shared);
                    Err(error)
                }
            }
        })
    }
}

/// Puts the units of a request back if its answer is no longer waited for. That says nothing about the store.
struct Held<S: Store, C: Clock> {
    shared: Arc<Shared<S, C>>,
    request: Request,
    is_complete: bool,
}

impl<S: Store, C: Clock> Drop for Held<S, C> {
    fn drop(&mut self) {
        if !self.is_complete {
            self.request.put_back(&self.shared);
        }
    }
}

impl<S: Store, C: Clock> Store for Leased<S, C> {
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Decision, S::Error>> + Send>>;

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future {
        match operation {
            Operation::Check => self.check(charges),
            Operation::Refund { taken_at } => self.shared.refund(taken_at, charges),
            Operation::Reset => {
                for charge in charges {
                    let digest = self.shared.leases.digest(charge.key());
                    self.shared
                        .leases
                        .shard(digest)
                        .forget(digest, charge.name());
                }
                self.shared.forward(operation, charges)
            }
            _ => self.shared.forward(operation, charges),
        }
    }

    fn check_at_once(&self, charges: &[Charge<'_>], decision: &mut Decision) -> bool {
        let mut request = Request::new(&self.shared, charges);
        request.take(&self.shared, charges);
        let Some(is_admitted) = request.outcome() else {
            request.put_back(&self.shared);
            return false;
        };
        *decision = request.conclude(&self.shared, is_admitted);
        true
    }

    fn identity(&self) -> Option<usize> {
        self.shared.store.identity()
    }

    /// Ends all leases, refunds what is left of them, and closes the store inside.
    async fn close(&self, deadline: Duration) -> bool {
        self.shared.take_no_more();
        if tokio::runtime::Handle::try_current().is_err() {
            // Leases end with their runtime. There is none to wait in.
            return self.shared.store.close(deadline).await;
        }
        let started = self.shared.now();
        let have_ended = tokio::time::timeout(deadline, self.shared.close())
            .await
            .is_ok();
        let elapsed = Duration::from_micros(self.shared.now().saturating_sub(started));
        // It closes without their refunds, too: later requests must not reach it.
        self.shared
            .store
            .close(deadline.saturating_sub(elapsed))
            .await
            && have_ended
    }
}

impl<S: Store, C: Clock> Shared<S, C> {
    /// Refunds charges: into their leases where these go on, otherwise in the store.
    fn refund(
        self: &Arc<Self>,
        taken_at: tower_quota_core::Timestamp,
        charges: &[Charge<'_>],
    ) -> <Leased<S, C> as Store>::Future {
        let now = self.now();
        let mut put_back: SmallVec<[Option<LimitStatus>; 3]> = SmallVec::new();
        let mut rest: SmallVec<[Charge<'_>; 3]> = SmallVec::new();
        for charge in charges {
            let digest = self.leases.digest(charge.key());
            let mut shard = self.leases.shard(digest);
            let pool = shard.put_back((digest, charge.name()), charge.units(), taken_at, now);
            let status = pool.map(|pool| pool.status(now, 0));
            if status.is_none() {
                rest.push(*charge);
            }
            put_back.push(status);
        }
        let operation = Operation::Refund { taken_at };
        if rest.is_empty() {
            let statuses = put_back.into_iter().flatten();
            return Box::pin(core::future::ready(Ok(Decision::from_statuses(
                operation, taken_at, statuses,
            ))));
        }
        let answer = self.forward(operation, &rest);
        Box::pin(async move {
            let answer = answer.await?;
            let mut answers = answer.statuses().iter().copied();
            let statuses = put_back
                .into_iter()
                .filter_map(|status| status.or_else(|| answers.next()));
            Ok(Decision::from_statuses(operation, answer.at(), statuses))
        })
    }

    /// Passes an operation on to the store, which counts by the quotas that allow for leases.
    fn forward(
        self: &Arc<Self>,
        operation: Operation,
        charges: &[Charge<'_>],
    ) -> <Leased<S, C> as Store>::Future {
        let plans: SmallVec<[Option<Arc<Plan>>; 3]> =
            charges.iter().map(|charge| self.plans.of(charge)).collect();
        let stored: SmallVec<[Charge<'_>; 3]> = charges
            .iter()
            .zip(&plans)
            .map(|(charge, plan)| {
                plan.as_ref()
                    .map_or(*charge, |plan| charge.with_quota(&plan.stored))
            })
            .collect();
        let answer = self.store.apply(operation, &stored);
        drop(stored);
        let now = self.now();
        let own: SmallVec<[(u64, u64, u64); 3]> = charges
            .iter()
            .map(|charge| {
                let digest = self.leases.digest(charge.key());
                let mut shard = self.leases.shard(digest);
                let pool = shard.pool(digest, charge.name(), charge.quota());
                (
                    charge.quota().capacity(),
                    charge.units(),
                    pool.map_or(0, |pool| pool.grants.units(now)),
                )
            })
            .collect();
        Box::pin(async move {
            let answer = answer.await?;
            let statuses =
                answer
                    .statuses()
                    .iter()
                    .zip(own)
                    .map(|(status, (limit, units, held))| {
                        let left = match held {
                            0 if status.limit == limit => status.left,
                            _ => Left::new(
                                status.remaining().saturating_add(held).min(limit),
                                status.reset_after(),
                            ),
                        };
                        let is_held = operation == Operation::Peek
                            && held >= units.max(1)
                            && status.outcome.is_refusal();
                        let outcome = if is_held {
                            Outcome::Allow
                        } else {
                            status.outcome
                        };
                        LimitStatus {
                            limit,
                            left,
                            outcome,
                            ..*status
                        }
                    });
            Ok(Decision::from_statuses(operation, answer.at(), statuses))
        })
    }
}

impl<S, C> Clone for Leased<S, C> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<S: fmt::Debug, C> fmt::Debug for Leased<S, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leased")
            .field("store", &self.shared.store)
            .finish_non_exhaustive()
    }
}
