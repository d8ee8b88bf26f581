//! The store that takes leases.

use core::fmt;
use core::future::ready;
use core::time::Duration;
use std::sync::Arc;

use smallvec::SmallVec;
use tower_quota_core::{
    Charge, Clock, Decision, MonotonicClock, Operation, OwnedCharge, RefusalFuture, Store,
};

use crate::answer::AnswerTimes;
use crate::options::LeaseOptions;
use crate::request::{Request, Step};
use crate::shared::Shared;
use crate::stats::LeaseStats;

/// Wraps a shared store, and decides hot clients from leases. Clones share the leases.
///
/// All instances together never exceed the quota. [The crate's page](crate) explains why, and lists the caveats.
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
///     // A task fetches leases in the background.
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
    /// Wraps a store, with the default options.
    #[must_use]
    pub fn new(store: S) -> Self {
        Self::with_options(store, LeaseOptions::default())
    }

    /// Wraps a store.
    #[must_use]
    pub fn with_options(store: S, options: LeaseOptions) -> Self {
        Self::with_clock(store, options, MonotonicClock::new())
    }
}

impl<S: Store, C: Clock + Clone> Leased<S, C> {
    /// Wraps a store, on your clock, for tests and simulations.
    ///
    /// The clock must run as fast as the timers of tokio, which end the leases.
    #[must_use]
    pub fn with_clock(store: S, options: LeaseOptions, clock: C) -> Self {
        Self {
            shared: Arc::new(Shared::new(store, clock, options)),
        }
    }
}

impl<S: Store, C: Clock> Leased<S, C> {
    /// Returns statistics of this store and all clones.
    #[must_use]
    pub fn stats(&self) -> LeaseStats {
        self.shared.pools.stats(self.shared.now())
    }

    /// Returns the wrapped store.
    #[must_use]
    pub fn store(&self) -> &S {
        self.shared.store.store()
    }

    fn check(&self, charges: &[Charge<'_>]) -> RefusalFuture<S> {
        let shared = &self.shared;
        let request = Request::take(shared, charges);
        if let Some(decision) = request.decide(shared) {
            return Box::pin(ready(Ok(decision)));
        }
        match request.begin(shared, charges) {
            Step::Refuse(decision) => Box::pin(ready(Ok(decision))),
            Step::Ask => self.ask(request, charges),
            Step::Wait(leases) => {
                let store = self.clone();
                let owned: SmallVec<[OwnedCharge; 3]> =
                    charges.iter().map(OwnedCharge::from).collect();
                Box::pin(async move {
                    for lease in leases {
                        // An error says that the answer is recorded, or that the call has failed.
                        let _ = lease.await;
                    }
                    store.check_again(&owned).await
                })
            }
        }
    }

    /// Decides a request that has waited for a lease. The request asks the store if the lease has too few units.
    fn check_again(&self, owned: &[OwnedCharge]) -> RefusalFuture<S> {
        let charges: SmallVec<[Charge<'_>; 3]> = owned.iter().map(OwnedCharge::as_charge).collect();
        let request = Request::take(&self.shared, &charges);
        match request.decide(&self.shared) {
            Some(decision) => Box::pin(ready(Ok(decision))),
            None => self.ask(request, &charges),
        }
    }

    fn ask(&self, request: Request, charges: &[Charge<'_>]) -> RefusalFuture<S> {
        let sent = self.shared.now();
        let (answer, known_refusal) = request.ask(&self.shared, charges);
        let mut call = Call {
            shared: Arc::clone(&self.shared),
            request,
            has_ended: false,
        };
        Box::pin(async move {
            let answer = answer.await;
            call.has_ended = true;
            let Call {
                shared, request, ..
            } = &call;
            match answer {
                Ok(answer) => {
                    let times = AnswerTimes {
                        sent,
                        received: shared.now(),
                        at: answer.at(),
                    };
                    Ok(request.complete(shared, &answer, Some(times)))
                }
                Err(error) => {
                    request.forget_answers(shared);
                    if let Some(refusal) = known_refusal {
                        return Ok(request.complete(shared, &refusal, None));
                    }
                    request.put_back(shared);
                    Err(error)
                }
            }
        })
    }
}

/// A call in flight. Puts the units of leases back if the future is dropped.
struct Call<S: Store, C: Clock> {
    shared: Arc<Shared<S, C>>,
    request: Request,
    has_ended: bool,
}

impl<S: Store, C: Clock> Drop for Call<S, C> {
    fn drop(&mut self) {
        if !self.has_ended {
            self.request.put_back(&self.shared);
        }
    }
}

impl<S: Store, C: Clock> Store for Leased<S, C> {
    type Error = S::Error;
    type Future = RefusalFuture<S>;

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future {
        match operation {
            Operation::Check => self.check(charges),
            operation => self.shared.apply(operation, charges),
        }
    }

    fn check_at_once(&self, charges: &[Charge<'_>], decision: &mut Decision) -> bool {
        let request = Request::take(&self.shared, charges);
        if let Some(decided) = request.decide(&self.shared) {
            *decision = decided;
            return true;
        }
        request.put_back(&self.shared);
        false
    }

    fn identity(&self) -> Option<usize> {
        self.shared.store.identity()
    }

    /// Ends all leases, refunds the unspent units, and closes the store inside.
    async fn close(&self, deadline: Duration) -> bool {
        let started = self.shared.now();
        let have_ended = self.shared.close(deadline).await;
        let elapsed = Duration::from_micros(self.shared.now().saturating_sub(started));
        // The store inside closes also without the refunds, so that later requests do not reach it.
        let rest = deadline.saturating_sub(elapsed);
        self.shared.store.close(rest).await && have_ended
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
