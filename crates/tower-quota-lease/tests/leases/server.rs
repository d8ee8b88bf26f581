//! Makes a store in virtual time with entries in refusals, like the Redis store.

use tower_quota_core::{Charge, Clock, Decision, Operation, Store, Timestamp};
use tower_quota_dev::simulation::VirtualClock;
use tower_quota_testkit::{ManualClock, ModelStore};

#[derive(Clone)]
/// A store for all instances.
pub(crate) struct Server {
    clock: VirtualClock,
    model_clock: ManualClock,
    model: ModelStore,
}

impl Server {
    pub(crate) fn new(clock: VirtualClock) -> Self {
        let model_clock = ManualClock::default();
        Self {
            clock,
            model: ModelStore::with_clock(model_clock.clone()),
            model_clock,
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

impl Store for Server {
    type Error = <ModelStore as Store>::Error;
    type Future = std::future::Ready<Result<Decision, Self::Error>>;

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future {
        self.model_clock.set(self.clock.now());
        self.model.apply(operation, charges)
    }
}
