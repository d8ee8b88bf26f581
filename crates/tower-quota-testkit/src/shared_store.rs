//! A store in this process that stands for one that other processes share.

use tower_quota_core::{Charge, Operation, Store};

/// A store wrapper that answers as a shared store does: never at once, and its refusals may be remembered.
///
/// A cache remembers the refusals of a store that sends its entries, such as [`ModelStore`](crate::ModelStore).
///
/// ```
/// use tower_quota_core::{RefusalCache, Store};
/// use tower_quota_testkit::{ManualClock, ModelStore, SharedStore};
///
/// let store = ModelStore::with_clock(ManualClock::default());
/// assert!(!store.is_shared());
/// let cache = RefusalCache::new(SharedStore(store));
/// assert!(cache.is_shared());
/// ```
#[derive(Clone, Debug)]
pub struct SharedStore<S>(pub S);

impl<S: Store> Store for SharedStore<S> {
    type Error = S::Error;
    type Future = S::Future;

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future {
        self.0.apply(operation, charges)
    }
}
