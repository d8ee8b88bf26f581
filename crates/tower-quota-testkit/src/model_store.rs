//! Makes a store of the model, for tests of wrappers and layers.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::{Arc, Mutex, PoisonError};

use tower_quota_core::{Charge, Clock, Decision, Operation, Store};

use crate::ManualClock;
use crate::model::Model;

/// A store that keeps an [`Entry`](tower_quota_core::Entry) for each key, and decides by the model.
///
/// Refusals carry the [entries](Decision::entries) of their keys. The store is slow, and never
/// forgets a key. Clones share the entries.
#[derive(Clone, Debug)]
pub struct ModelStore {
    clock: ManualClock,
    model: Arc<Mutex<Model>>,
}

impl ModelStore {
    /// Creates an empty store on this clock.
    #[must_use]
    pub fn with_clock(clock: ManualClock) -> Self {
        Self {
            clock,
            model: Arc::default(),
        }
    }

    /// Forgets all counters, like a server that has lost its data.
    pub fn forget(&self) {
        *self.model.lock().unwrap_or_else(PoisonError::into_inner) = Model::default();
    }

    fn decide(&self, operation: Operation, charges: &[Charge<'_>]) -> Decision {
        let mut model = self.model.lock().unwrap_or_else(PoisonError::into_inner);
        let decision = model.apply(operation, charges, self.clock.now());
        if operation == Operation::Check && !decision.is_allowed() {
            return decision.with_entries(model.entries_of(charges));
        }
        decision
    }
}

impl Store for ModelStore {
    type Error = Infallible;
    type Future = Ready<Result<Decision, Infallible>>;

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future {
        ready(Ok(self.decide(operation, charges)))
    }

    fn check_at_once(&self, charges: &[Charge<'_>], decision: &mut Decision) -> bool {
        *decision = self.decide(Operation::Check, charges);
        true
    }

    /// Returns `false`, as a store in memory does.
    fn is_shared(&self) -> bool {
        false
    }
}
