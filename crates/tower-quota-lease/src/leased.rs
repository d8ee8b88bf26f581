use core::fmt;
use core::future::ready;
use core::time::Duration;
use std::sync::Arc;

use tokio::runtime::Handle;
use tower_quota_core::{
    Charge, Clock, Decision, MonotonicClock, Operation, OwnedCharge, RefusalFuture, Store,
};

use crate::lease_call::LeaseCall;
use crate::options::LeaseOptions;
use crate::request::LeasedRequest;
use crate::shared::LeaseState;
use crate::stats::LeaseStats;

/// Wraps a shared store, and decides hot clients from leases. Clones share the leases.
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
///
/// See [the crate docs](crate) for the guarantee and the caveats.
pub struct Leased<S> {
    shared: Arc<LeaseState<S>>,
}

impl<S: Store> Leased<S> {
    /// Wraps your store, with the default options.
    #[must_use]
    pub fn new(store: S) -> Self {
        Self::with_options(store, LeaseOptions::default())
    }

    /// Wraps your store, with options.
    #[must_use]
    pub fn with_options(store: S, options: LeaseOptions) -> Self {
        Self::with_clock(store, options, MonotonicClock::new())
    }

    /// Wraps your store, on your clock, for tests and simulations.
    ///
    /// The clock must run as fast as the timers of tokio, which end the leases.
    #[must_use]
    pub fn with_clock(store: S, options: LeaseOptions, clock: impl Clock + Clone) -> Self {
        Self {
            shared: Arc::new(LeaseState::new(store, options, clock)),
        }
    }

    /// Returns statistics of this store and all clones.
    #[must_use]
    pub fn stats(&self) -> LeaseStats {
        self.shared.pools.stats()
    }

    /// Returns the wrapped store.
    #[must_use]
    pub fn store(&self) -> &S {
        self.shared.store.store()
    }

    fn fetch_leases(&self, request: &mut LeasedRequest) {
        for due in request.due.drain(..) {
            LeaseCall::spawn(&self.shared, due);
        }
    }

    fn take(&self, charges: &[Charge<'_>]) -> LeasedRequest {
        let mut request = LeasedRequest::take(&self.shared.pools, charges);
        self.fetch_leases(&mut request);
        request
    }

    fn check(&self, charges: &[Charge<'_>], may_wait: bool) -> RefusalFuture<S> {
        let mut request = self.take(charges);
        if let Some(decision) = request.decide() {
            return Box::pin(ready(Ok(decision)));
        }
        let store = &self.shared.store;
        if request.is_unplanned() {
            request.count(|stats| stats.by_store += 1);
            // Pass the answer on with its entries, for a cache around this store.
            return Box::pin(store.store().check(charges));
        }
        let refusal = store.refusal(&request.asked(charges));
        request.note(charges, refusal.is_some());
        if let Some(refusal) = refusal {
            request.count(|stats| stats.refused_here += 1);
            return Box::pin(ready(Ok(request.complete(&refusal, false))));
        }
        self.fetch_leases(&mut request);
        let calls = match may_wait {
            true => request.calls_in_flight(charges),
            false => Vec::new(),
        };
        if calls.is_empty() {
            return self.ask(request, charges);
        }
        request.forget_demand(charges);
        drop(request);
        let store = self.clone();
        let owned: Vec<OwnedCharge> = charges.iter().map(OwnedCharge::from).collect();
        Box::pin(async move {
            for mut call in calls {
                // Ignore the error, which says that the call has ended.
                let _ = call.recv().await;
            }
            let charges: Vec<Charge<'_>> = owned.iter().map(OwnedCharge::as_charge).collect();
            // Wait only once, so that a request is answered within two deadlines of the store.
            store.check(&charges, false).await
        })
    }

    fn ask(&self, mut request: LeasedRequest, charges: &[Charge<'_>]) -> RefusalFuture<S> {
        request.count(|stats| stats.by_store += 1);
        let (answer, known_refusal) = self.shared.store.send(&request.asked(charges));
        Box::pin(async move {
            match answer.await {
                Ok(answer) => Ok(request.complete(&answer, true)),
                Err(error) => {
                    // The call may have charged units, so the last answers are no longer right.
                    request.forget_answers();
                    let refusal = known_refusal.ok_or(error)?;
                    Ok(request.complete(&refusal, false))
                }
            }
        })
    }
}

impl<S: Store> Store for Leased<S> {
    type Error = S::Error;
    type Future = RefusalFuture<S>;

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future {
        match operation {
            Operation::Check => self.check(charges, true),
            operation => self.shared.apply(operation, charges),
        }
    }

    fn check_at_once(&self, charges: &[Charge<'_>], decision: &mut Decision) -> bool {
        let decided = self.take(charges).decide();
        let is_decided = decided.is_some();
        *decision = decided.unwrap_or_default();
        is_decided
    }

    fn known_refusal(&self, charges: &[Charge<'_>]) -> Option<Decision> {
        // Drops the request, so leased units return to their leases.
        let mut request = self.take(charges);
        let refusal = self.shared.store.known_refusal(&request.asked(charges))?;
        Some(request.complete(&refusal, false))
    }

    fn identity(&self) -> Option<usize> {
        self.shared.store.identity()
    }

    /// Ends all leases, refunds the unspent units, and closes the wrapped store.
    async fn close(&self, deadline: Duration) -> bool {
        let LeaseState {
            store,
            pools,
            closing,
        } = &*self.shared;
        closing.send_replace(true);
        // Close the store at once, because leases and timers cannot exist without a runtime.
        if Handle::try_current().is_err() {
            return store.close(deadline).await;
        }
        let started = pools.now();
        let ended = tokio::time::timeout(deadline, closing.closed()).await;
        let elapsed = Duration::from_micros(pools.now().saturating_sub(started));
        // Close the wrapped store even if refunds fail, so that later requests do not reach it.
        store.close(deadline.saturating_sub(elapsed)).await && ended.is_ok()
    }
}

impl<S> Clone for Leased<S> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<S: fmt::Debug> fmt::Debug for Leased<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leased")
            .field("store", &self.shared.store)
            .finish_non_exhaustive()
    }
}
