//! Stores: where state lives.

use core::future::Future;
use core::pin::Pin;
use std::sync::Arc;

use crate::charge::{Charge, Operation};
use crate::decision::Decision;

/// Where state lives. A store receives charges, which are data, decides all of them in one atomic step, and answers
/// with a [`Decision`].
///
/// A store must agree with [`Entry`](crate::Entry), the model, step by step; the conformance suite of
/// `tower-quota-testkit` tells whether it does. It reads time from whatever holds the state, once per call.
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
    /// What can go wrong with the store itself. A refusal is not an error.
    type Error: core::error::Error + Send + Sync + 'static;

    /// The answer to come. It owns what it needs: the charges are read before `apply` returns.
    type Future: Future<Output = Result<Decision, Self::Error>> + Send + 'static;

    /// Does one operation on all the charges of a request, in one atomic step.
    ///
    /// A store may take the charges before it returns, as [`MemoryStore`](crate::MemoryStore) does, or while the future is
    /// polled: dropping the future may or may not leave them taken.
    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future;

    /// Takes every charge if all of them fit, and none otherwise.
    fn check(&self, charges: &[Charge<'_>]) -> Self::Future {
        self.apply(Operation::Check, charges)
    }

    /// Does what [`check`](Self::check) does, where that takes no time, and leaves the decision here, in place of any that
    /// was there: it is large, and need not be moved then. Whether it has: a store that has to wait does nothing, as all do unless they say otherwise.
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
}

/// A store chosen at run time: any [`Store`] behind one type, for the price of a boxed future per decision that takes time.
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
}

impl<S: Store> ErasedStore for S {
    fn apply_boxed(&self, operation: Operation, charges: &[Charge<'_>]) -> BoxDecision {
        let decided = self.apply(operation, charges);
        Box::pin(async move { decided.await.map_err(|error| BoxStoreError(Box::new(error))) })
    }

    fn check_in_place(&self, charges: &[Charge<'_>], decision: &mut Decision) -> bool {
        self.check_at_once(charges, decision)
    }
}

impl BoxStore {
    /// Forgets which store it is.
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
