//! Stores, which keep the state and decide.

use core::error::Error;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::time::Duration;
use std::sync::Arc;

use crate::charge::{Charge, Operation};
use crate::decision::Decision;

/// Keeps the state, and decides all charges of a request together.
///
/// A store on one machine decides in a single atomic step. A store over several machines may take
/// one step for each key, if it refunds the earlier steps when a later one refuses. Your store must
/// agree with the model, [`Entry`](crate::Entry). Run the conformance suite of
/// `tower-quota-testkit`. Read the time once per call, on the machine that holds the state.
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
    /// The error when the store cannot decide. A refusal is not an error.
    type Error: Error + Send + Sync + 'static;

    /// The future of a decision, which borrows no charge.
    type Future: Future<Output = Result<Decision, Self::Error>> + Send + 'static;

    /// Applies an operation to all charges of a request.
    ///
    /// A store may take the charges before `apply` returns, or while you poll the future. A dropped future may have taken
    /// the charges.
    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future;

    /// Takes all charges if all charges fit. Otherwise takes no charge.
    fn check(&self, charges: &[Charge<'_>]) -> Self::Future {
        self.apply(Operation::Check, charges)
    }

    /// Checks without a wait, and writes the large decision in place.
    ///
    /// Returns whether the store has decided. If your store has to wait, return `false` without an effect, as the default
    /// does.
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

    /// Returns the refusal to use if the store fails, without a call. Takes no charge.
    ///
    /// A wrapper that remembers refusals returns the last one while it holds. A caller may give up before the wrapper
    /// answers, so [`RefusalCache`](crate::RefusalCache) reads this before each call. The default returns `None`.
    #[doc(hidden)]
    fn known_refusal(&self, charges: &[Charge<'_>]) -> Option<Decision> {
        let _ = charges;
        None
    }

    /// Returns a number that only clones of this store share, if known.
    ///
    /// Layers use it to notice that another layer has counted a request in the same store.
    fn identity(&self) -> Option<usize> {
        None
    }

    /// Returns whether other processes share the counters, `true` by default.
    ///
    /// A [`RefusalCache`](crate::RefusalCache) saves round trips to a shared store.
    #[inline]
    fn is_shared(&self) -> bool {
        true
    }

    /// Waits until refunds and settlements in flight have arrived, or until the deadline.
    ///
    /// Returns whether all have arrived. Call `close` after the last request of your service. The default returns `true`.
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

    fn known_refusal(&self, charges: &[Charge<'_>]) -> Option<Decision> {
        (**self).known_refusal(charges)
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

/// A store of a type that you choose at run time.
///
/// A decision costs an extra allocation if the store has to wait.
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
pub struct BoxStore {
    store: Arc<dyn ErasedStore>,
    identity: Option<usize>,
    is_shared: bool,
}

/// The error of a [`BoxStore`].
#[derive(Debug)]
pub struct BoxStoreError(Box<dyn Error + Send + Sync>);

/// The source of the error of a store that got more requests than it can decide in time.
///
/// The layer counts such a request in this process by default, because a flood must not lift the limits. If your store
/// can be overloaded, return this from [`Error::source`].
#[derive(Clone, Copy, Debug)]
pub struct Overloaded;

/// The source of the error of a store that can never decide the request, such as one with too many charges.
///
/// The layer answers with 500, whatever [`OnStoreFailure`] you chose, because waiting does not help. If your store does
/// not support all requests, return this from [`Error::source`].
///
/// [`OnStoreFailure`]: https://docs.rs/tower-quota/latest/tower_quota/enum.OnStoreFailure.html
#[derive(Clone, Copy, Debug)]
pub struct Undecidable;

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
type BoxDecision = BoxFuture<'static, Result<Decision, BoxStoreError>>;

trait ErasedStore: Send + Sync {
    fn apply_boxed(&self, operation: Operation, charges: &[Charge<'_>]) -> BoxDecision;

    fn check_in_place(&self, charges: &[Charge<'_>], decision: &mut Decision) -> bool;

    fn known_refusal_of(&self, charges: &[Charge<'_>]) -> Option<Decision>;

    fn close_boxed(&self, deadline: Duration) -> BoxFuture<'_, bool>;
}

impl<S: Store> ErasedStore for S {
    fn apply_boxed(&self, operation: Operation, charges: &[Charge<'_>]) -> BoxDecision {
        let decided = self.apply(operation, charges);
        Box::pin(async {
            decided
                .await
                .map_err(|error| BoxStoreError(Box::new(error)))
        })
    }

    fn check_in_place(&self, charges: &[Charge<'_>], decision: &mut Decision) -> bool {
        self.check_at_once(charges, decision)
    }

    fn known_refusal_of(&self, charges: &[Charge<'_>]) -> Option<Decision> {
        self.known_refusal(charges)
    }

    fn close_boxed(&self, deadline: Duration) -> BoxFuture<'_, bool> {
        Box::pin(self.close(deadline))
    }
}

impl BoxStore {
    /// Boxes a store.
    #[must_use]
    pub fn new(store: impl Store) -> Self {
        Self {
            identity: store.identity(),
            is_shared: store.is_shared(),
            store: Arc::new(store),
        }
    }
}

impl Store for BoxStore {
    type Error = BoxStoreError;
    type Future = BoxDecision;

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future {
        self.store.apply_boxed(operation, charges)
    }

    fn check_at_once(&self, charges: &[Charge<'_>], decision: &mut Decision) -> bool {
        self.store.check_in_place(charges, decision)
    }

    fn known_refusal(&self, charges: &[Charge<'_>]) -> Option<Decision> {
        self.store.known_refusal_of(charges)
    }

    fn identity(&self) -> Option<usize> {
        self.identity
    }

    fn is_shared(&self) -> bool {
        self.is_shared
    }

    fn close(&self, deadline: Duration) -> impl Future<Output = bool> + Send {
        self.store.close_boxed(deadline)
    }
}

impl fmt::Debug for BoxStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BoxStore")
    }
}

impl fmt::Display for Overloaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the store is overloaded")
    }
}

impl Error for Overloaded {}

impl fmt::Display for Undecidable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the store can never decide the request")
    }
}

impl Error for Undecidable {}

impl fmt::Display for BoxStoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for BoxStoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}
