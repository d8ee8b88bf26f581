//! The state that a leased store and its clones share.

use core::time::Duration;

use tokio::sync::watch;
use tower_quota_core::{Clock, RefusalCache, Store};

use crate::answer::micros;
use crate::options::LeaseOptions;
use crate::pools::Pools;

pub(crate) struct Shared<S, C> {
    pub(crate) store: RefusalCache<S>,
    pub(crate) pools: Pools,
    /// The longest term of a lease, in microseconds.
    pub(crate) longest: u64,
    clock: C,
    /// Becomes true when the store closes. Each task of a lease has a receiver.
    pub(crate) closing: watch::Sender<bool>,
}

impl<S: Store, C: Clock + Clone> Shared<S, C> {
    pub(crate) fn new(store: S, clock: C, options: LeaseOptions) -> Self {
        Self {
            store: RefusalCache::with_clock(store, clock.clone()),
            pools: Pools::new(options.keys),
            longest: micros(options.longest),
            clock,
            closing: watch::Sender::new(false),
        }
    }
}

impl<S: Store, C: Clock> Shared<S, C> {
    /// Returns the time of this instance, in microseconds.
    pub(crate) fn now(&self) -> u64 {
        self.clock.now().as_micros()
    }

    /// Ends all leases, and waits for their refunds. Returns whether all tasks have ended by the deadline.
    pub(crate) async fn close(&self, deadline: Duration) -> bool {
        self.closing.send_replace(true);
        // Without a runtime there are no tasks, and no timer.
        if tokio::runtime::Handle::try_current().is_err() {
            return true;
        }
        tokio::time::timeout(deadline, self.closing.closed())
            .await
            .is_ok()
    }
}
