//! Stores keep the state and decide.

use core::future::Future;
use core::pin::Pin;
use core::time::Duration;
use std::sync::Arc;

use crate::charge::{Charge, Operation};
use crate::decision::Decision;

/// Keeps the state, and decides the charges of a request in one atomic step.
///
/// Every store agrees with the model, [`Entry`](crate::Entry). Test your own store with the conformance suite of
/// `tower-quota-testkit`. Read the time once per call, on the side that holds the state.
///
/// ```
/// use tower_quota_core::{Charge, Key, MemoryStore, Name, Quota, Store};
///
/// # futures_executor_block_on(async {
/// let store = MemoryStore::new();
/// let quota = Quota::per_minute(2);
/// let ann = Key::owned(Name::new("user"), "ann");
///
/// for left in [1, 0] {
///     let decision = store.check(&[Charge::new("minute", &quota, &ann)]).await?;
///     assert!(decision.is_allowed());
///     assert_eq!(decision.statuses()[0].remaining(), left);
/// }
/// assert!(!store.check(&[Charge::new("minute", &quota, &ann)]).await?.is_allowed());
/// # Ok::<(), core::convert::Infallible>(())
/// # }).unwrap();
/// # fn futures_executor_block_on<F: core::future::Future>(future: F) -> F::Output {
/// #     let mut future = core::pin::pin!(future);
/// #     let mut context = core::task::Context::from_waker(core::task::Waker::noop());
/// #     loop { if let core::task::Poll::Ready(done) = future.as_mut().poll(&mut context) { return done } }
/// # }
/// ```
pub trait Store: Send + Sync + 'static {
    /// The error of a store that cannot decide. A refusal is not an error.
    type Error: core::error::Error + Send + Sync + 'static;

    /// The future of the answer. `apply` reads the charges before the call returns.
    type Future: Future<Output = Result<Decision, Self::Error>> + Send + 'static;

    /// Applies an operation to all charges of a request, in one atomic step.
    ///
    /// A store takes the charges during the call, like [`MemoryStore`](crate::MemoryStore), or while you poll the future. If you drop
    /// the future, the store has taken the charges or not.
    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future;

    /// Takes all charges if all charges fit.
    fn check(&self, charges: &[Charge<'_>]) -> Self::Future {
        self.apply(Operation::Check, charges)
    }

    /// Checks and writes to `decision`, if the store never waits.
    ///
    /// Returns whether the store has decided. The default returns `false`. A decision is large, so a decision in place saves a move.
    ///
    /// ```
    /// use tower_quota_core::{Charge, Decision, Key, MemoryStore, Quota, Store};
    ///
    /// let quota = Quota::per_minute(2);
    /// let mut decision = Decision::default();
    /// assert!(MemoryStore::new().check_at_once(&[Charge::new("minute", &quota, &Key::EVERYONE)], &mut decision));
    /// assert_eq!(decision.statuses()[0].remaining(), 1);
    /// ```
    #[inline]
    fn check_at_once(&self, charges: &[Charge<'_>], decision: &mut Decision) -> bool {
        let _ = (charges, decision);
        false
    }

    /// Returns a number that the store shares only with clones.
    ///
    /// A layer uses the number to notice that another layer has counted a request in the same store. The default is unknown.
    fn identity(&self) -> Option<usize> {
        None
    }

    /// Returns whether other processes may use the counters. Defaults to `true`.
    ///
    /// A call of a shared store takes a round trip, so a [`RefusalCache`](crate::RefusalCache) remembers refusals.
    #[inline]
    fn is_shared(&self) -> bool {
        true
    }

    /// Waits until refunds and settlements in flight have reached the store, but no longer than the deadline.
    ///
    /// Returns whether all have reached the store. Call `close` when your service shuts down. The default returns at once.
    fn close(&self, deadline: Duration) -> impl Future<Output = bool> + Send {
        let _ = deadline;
        core::future::ready(true)
    }
}

impl<S: Store + ?Sized> Store for Arc<S> {
    type Error = S::Error;
    type Future = S::Future;

    #[inline]
    fn check_at_once(&self, charges: &[Charge<'_>], decision: &mut Decision) -> bool {
        (**self).check_at_once(charges, decision)
    }

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future {
        (**self).apply(operation, charges)
    }

    fn identity(&self) -> Option<usize> {
        (**self).identity()
    }

    #[inline]
    fn is_shared(&self) -> bool {
        (**self).is_shared()
    }

    fn close(&self, deadline: Duration) -> impl Future<Output = bool> + Send {
        (**self).close(deadline)
    }
}

/// Any [`Store`], chosen at run time.
///
/// A decision that is not made at once costs one more allocation.
///
/// ```
/// use tower_quota_core::{BoxStore, MemoryStore};
///
/// # struct OtherStore;
/// # impl OtherStore { fn new() -> MemoryStore { MemoryStore::new() } }
/// let in_memory = true; // from the configuration
/// let store = if in_memory { BoxStore::new(MemoryStore::new()) } else { BoxStore::new(OtherStore::new()) };
/// # let _ = store;
/// ```
#[derive(Clone)]
pub struct BoxStore(Arc<dyn ErasedStore>);

/// The error of a [`BoxStore`].
#[derive(Debug)]
pub struct BoxStoreError(Box<dyn core::error::Error + Send + Sync>);

type BoxDecision = Pin<Box<dyn Future<Output = Result<Decision, BoxStoreError>> + Send>>;

trait ErasedStore: Send + Sync {
    fn apply_boxed(&self, operation: Operation, charges: &[Charge<'_>]) -> BoxDecision;

    fn check_in_place(&self, charges: &[Charge<'_>], decision: &mut Decision) -> bool;

    fn identity_of_store(&self) -> Option<usize>;

    fn is_shared_store(&self) -> bool;

    fn close_boxed(&self, deadline: Duration) -> Pin<Box<dyn Future<Output = bool> + Send + '_>>;
}

impl<S: Store> ErasedStore for S {
    fn apply_boxed(&self, operation: Operation, charges: &[Charge<'_>]) -> BoxDecision {
        let decided = self.apply(operation, charges);
        Box::pin(async move {
            decided
                .await
                .map_err(|error| BoxStoreError(Box::new(error)))
        })
    }

    fn check_in_place(&self, charges: &[Charge<'_>], decision: &mut Decision) -> bool {
        self.check_at_once(charges, decision)
    }

    fn identity_of_store(&self) -> Option<usize> {
        self.identity()
    }

    fn is_shared_store(&self) -> bool {
        self.is_shared()
    }

    fn close_boxed(&self, deadline: Duration) -> Pin<Box<dyn Future<Output = bool> + Send + '_>> {
        Box::pin(self.close(deadline))
    }
}

impl BoxStore {
    /// Boxes a store.
    #[must_use]
    pub fn new(store: impl Store) -> Self {
        Self(Arc::new(store))
    }
}

impl Store for BoxStore {
    type Error = BoxStoreError;
    type Future = BoxDecision;

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future {
        self.0.apply_boxed(operation, charges)
    }

    fn check_at_once(&self, charges: &[Charge<'_>], decision: &mut Decision) -> bool {
        self.0.check_in_place(charges, decision)
    }

    fn identity(&self) -> Option<usize> {
        self.0.identity_of_store()
    }

    fn is_shared(&self) -> bool {
        self.0.is_shared_store()
    }

    fn close(&self, deadline: Duration) -> impl Future<Output = bool> + Send {
        self.0.close_boxed(deadline)
    }
}

impl core::fmt::Debug for BoxStore {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("BoxStore")
    }
}

impl core::fmt::Display for BoxStoreError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}

impl core::error::Error for BoxStoreError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        self.0.source()
    }
}
