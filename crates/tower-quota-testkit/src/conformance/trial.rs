//! The store, the clock and the model of one case.

use std::time::Duration;

use tower_quota_core::{Algorithm, Charge, Clock, Decision, Operation, Quota, Store, Timestamp};

use super::capability::Capability;
use super::failure::Failure;
use super::samples::TEN_IN_TEN;
use crate::clock::ManualClock;
use crate::model::{Model, debts};

/// A store under test. The model takes every step too, and both must answer the same.
pub(super) struct Trial<S> {
    store: S,
    clock: ManualClock,
    model: Model,
    lacks: &'static [Capability],
}

impl<S: Store> Trial<S> {
    pub(super) fn new(store: S, clock: ManualClock, lacks: &'static [Capability]) -> Self {
        Self {
            store,
            clock,
            model: Model::default(),
            lacks,
        }
    }

    /// Returns ten units in ten seconds, by every algorithm that the store has.
    pub(super) fn quotas(&self) -> Vec<(&'static str, Quota)> {
        let has = |quota: &Quota| match quota.algorithm() {
            Algorithm::LeakyBucket => !self.lacks.contains(&Capability::Waiting),
            Algorithm::SlidingLog => !self.lacks.contains(&Capability::SlidingLogs),
            _ => true,
        };
        TEN_IN_TEN
            .iter()
            .copied()
            .filter(|(_, quota)| has(quota))
            .collect()
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

    /// Moves the clock by `span` less a microsecond.
    pub(super) fn advance_to_just_before(&self, span: Duration) {
        self.clock.advance(span - MICROSECOND);
    }

    pub(super) async fn check(
        &mut self,
        step: &str,
        charges: &[Charge<'_>],
    ) -> Result<Decision, Failure> {
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
        let compares_debts = !self.lacks.contains(&Capability::ChargeModes);
        if found == expected && (!compares_debts || debts(&found) == debts(&expected)) {
            Ok(found)
        } else {
            Err(Failure::new(
                step,
                format!("the model says\n    {expected:?}\n  and the store\n    {found:?}"),
            ))
        }
    }
}

/// The shortest span that stores tell apart.
pub(super) const MICROSECOND: Duration = Duration::from_micros(1);
