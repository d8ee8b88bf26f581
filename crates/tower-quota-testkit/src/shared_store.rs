//! A store in this process that stands for one that other processes share.

use tower_quota_core::{Charge, Operation, Store};

/// A store wrapper that answers as a shared store does: never at once, and its refusals may be remembered.
///
/// ```
/// use tower_quota_core::{MemoryStore, RefusalCache, Store};
/// use tower_quota_testkit::SharedStore;
///
/// assert!(!MemoryStore::new().is_shared());
/// let cache = RefusalCache::new(SharedStore(MemoryStore::new()));
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
