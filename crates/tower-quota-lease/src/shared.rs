use std::sync::Arc;

use tokio::sync::watch;
use tower_quota_core::{Clock, KeyHasher, RefusalCache, Store};

use crate::options::LeaseOptions;
use crate::pools::Pools;

pub(crate) struct LeaseState<S> {
    pub(crate) store: RefusalCache<S>,
    pub(crate) pools: Arc<Pools>,
    pub(crate) closing: watch::Sender<bool>,
}

impl<S: Store> LeaseState<S> {
    pub(crate) fn new(store: S, options: LeaseOptions, clock: impl Clock + Clone) -> Self {
        let hasher = options.hasher.unwrap_or_else(KeyHasher::random);
        Self {
            store: RefusalCache::with_clock(store, clock.clone()).hasher(hasher),
            pools: Arc::new(Pools::new(options, hasher, clock)),
            closing: watch::Sender::new(false),
        }
    }
}
