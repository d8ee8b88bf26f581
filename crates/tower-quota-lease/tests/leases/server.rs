//! Makes a store in virtual time with entries in refusals, like the Redis store.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tower_quota_core::{Charge, Clock, Decision, Operation, Store, Timestamp};
use tower_quota_dev::simulation::VirtualClock;
use tower_quota_testkit::{ManualClock, ModelStore};

#[derive(Clone)]
/// A store for all instances.
pub(crate) struct Server {
    clock: VirtualClock,
    model_clock: ManualClock,
    model: ModelStore,
    /// The end of the last reset. A reset takes a microsecond, as on a server, so no later charge has
    /// the instant of a charge that the reset has forgotten.
    free_at: Arc<Mutex<Timestamp>>,
}

impl Server {
    pub(crate) fn new(clock: VirtualClock) -> Self {
        let model_clock = ManualClock::default();
        Self {
            clock,
            model: ModelStore::with_clock(model_clock.clone()),
            model_clock,
            free_at: Arc::default(),
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
        let mut free_at = self.free_at.lock().unwrap();
        let now = self.clock.now().max(*free_at);
        if operation == Operation::Reset {
            *free_at = now + Duration::from_micros(1);
        }
        self.model_clock.set(now);
        self.model.apply(operation, charges)
    }
}
