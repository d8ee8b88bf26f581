//! Makes a store in this process look like a store that other processes share.

use tower_quota_core::{Charge, Operation, Store};

/// A wrapper that makes a store look shared. The store never answers at once, and a cache may
/// remember refusals.
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
