//! Runs the steps of a case on the store and the model.

use std::fmt;
use std::time::Duration;

use tower_quota_core::{
    BoxStore, Charge, Clock, Decision, Operation, Outcome, Quota, Store, Timestamp,
};

use super::capability::Capability;
use super::failure::{Failure, Verdict, expect};
use super::samples::{Sample, TEN_IN_TEN, expect_allowed, expect_remaining};
use crate::clock::ManualClock;
use crate::model::{Model, is_same};

/// A store under test, with the model. Both take every step, and must give the same answers.
pub(super) struct Trial {
    store: BoxStore,
    clock: ManualClock,
    model: Model,
    lacks: &'static [Capability],
    /// The name of the sample of the case, followed by `: `.
    subject: String,
    step: String,
}

impl Trial {
    pub(super) fn new(store: impl Store, clock: ManualClock, lacks: &'static [Capability]) -> Self {
        Self {
            store: BoxStore::new(store),
            clock,
            model: Model::default(),
            lacks,
            subject: String::new(),
            step: String::new(),
        }
    }

    pub(super) fn samples(&self) -> Vec<Sample> {
        let has = |(_, quota): &&(&str, Quota)| Capability::allow(self.lacks, quota.algorithm());
        let samples = TEN_IN_TEN.iter().filter(has);
        samples
            .map(|(name, quota)| Sample::new(*name, *quota))
            .collect()
    }

    pub(super) fn store(&self) -> &BoxStore {
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

    pub(super) fn advance_to_just_before(&self, span: Duration) {
        self.clock.advance(span - MICROSECOND);
    }

    pub(super) fn begin(&mut self, sample: &Sample) {
        self.subject = format!("{sample}: ");
    }

    pub(super) fn step(&mut self, name: impl fmt::Display) {
        self.step = format!("{}{name}", self.subject);
    }

    pub(super) async fn admits(&mut self, charges: &[Charge<'_>]) -> Result<Decision, String> {
        let decision = self.check(charges).await?;
        expect_allowed(&decision, true)?;
        Ok(decision)
    }

    pub(super) async fn refuses(&mut self, charges: &[Charge<'_>]) -> Result<Decision, String> {
        let decision = self.check(charges).await?;
        expect_allowed(&decision, false)?;
        Ok(decision)
    }

    pub(super) async fn gets(
        &mut self,
        charges: &[Charge<'_>],
        outcome: Outcome,
    ) -> Result<Decision, String> {
        let decision = self.check(charges).await?;
        expect("outcome", decision.outcome(), outcome)?;
        Ok(decision)
    }

    pub(super) async fn leaves(&mut self, charges: &[Charge<'_>], remaining: &[u64]) -> Verdict {
        expect_remaining(&self.check(charges).await?, remaining)
    }

    pub(super) async fn check(&mut self, charges: &[Charge<'_>]) -> Result<Decision, String> {
        self.apply(Operation::Check, charges).await
    }

    pub(super) async fn apply(
        &mut self,
        operation: Operation,
        charges: &[Charge<'_>],
    ) -> Result<Decision, String> {
        let expected = self.model.apply(operation, charges, self.clock.now());
        let answer = self.store.apply(operation, charges).await;
        let found = answer.map_err(|error| format!("the store failed: {error}"))?;
        if is_same(&found, &expected, self.lacks) {
            Ok(found)
        } else {
            Err(format!(
                "the model says\n    {expected:?}\n  and the store\n    {found:?}"
            ))
        }
    }

    pub(super) async fn refund(
        &mut self,
        decision: &mut Decision,
        charges: &[Charge<'_>],
    ) -> Result<Decision, String> {
        let refund = decision.refund();
        let refund = refund.ok_or("an admitted request should have a refund and has none")?;
        self.apply(refund, charges).await
    }

    pub(super) fn conclude(&self, verdict: Verdict) -> Result<(), Failure> {
        verdict.map_err(|reason| Failure::new(&self.step, reason))
    }
}

pub(super) const MICROSECOND: Duration = Duration::from_micros(1);
