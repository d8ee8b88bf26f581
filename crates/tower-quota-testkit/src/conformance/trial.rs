//! One case's store, clock and model.

use std::time::Duration;

use tower_quota_core::{Charge, Clock, Decision, Operation, Store, Timestamp};

use super::failure::Failure;
use super::model::Model;
use crate::clock::ManualClock;

/// A store under test. Every step is taken by the model too, and has to come out the same.
pub(super) struct Trial<S> {
    store: S,
    clock: ManualClock,
    model: Model,
}

impl<S: Store> Trial<S> {
    pub(super) fn new(store: S, clock: ManualClock) -> Self {
        Self { store, clock, model: Model::default() }
    }

    pub(super) fn store(&self) -> &S {
        &self.store
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(super) fn set(&self, now: Timestamp) {
        self.clock.set(now);
    }

    pub(super) fn advance(&self, span: Duration) {
        self.clock.advance(span);
    }

    /// Waits `span` less a microsecond.
    pub(super) fn advance_to_just_before(&self, span: Duration) {
        self.clock.advance(span - MICROSECOND);
    }

    pub(super) async fn check(&mut self, step: &str, charges: &[Charge<'_>]) -> Result<Decision, Failure> {
        self.apply(step, Operation::Check, charges).await
    }

    pub(super) async fn apply(
        &mut self,
        step: &str,
        operation: Operation,
        charges: &[Charge<'_>],
    ) -> Result<Decision, Failure> {
        let expected = self.model.apply(operation, charges, self.clock.now());
        let found = self
            .store
            .apply(operation, charges)
            .await
            .map_err(|error| Failure::new(step, format!("the store failed: {error}")))?;
        if found == expected {
            Ok(found)
        } else {
            Err(Failure::new(step, format!("the model says\n    {expected:?}\n  and the store\n    {found:?}")))
        }
    }
}

/// The least time there is.
pub(super) const MICROSECOND: Duration = Duration::from_micros(1);
