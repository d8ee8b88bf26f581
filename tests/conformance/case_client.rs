//! The client of a case, with the limits and the key of the case. All cases share a clock.

use std::time::Duration;

use tower_quota_core::{Charge, Decision, Key, Name, Operation, Quota, Store};
use tower_quota_testkit::ManualClock;

use super::models::ORIGIN;

/// Names for limits, by position.
pub(crate) const LIMITS: [Name; 2] = [Name::new("limit"), Name::new("other")];
const CASE: Name = Name::new("case");

pub(crate) struct CaseClient<'a, S> {
    store: &'a S,
    clock: &'a ManualClock,
    key: Key<'static>,
    pub(crate) limits: Vec<Quota>,
}

impl<'a, S: Store> CaseClient<'a, S> {
    /// Creates a client. `name` must be unique among all cases.
    pub(crate) fn new(store: &'a S, clock: &'a ManualClock, name: &str, limits: &[Quota]) -> Self {
        clock.set(ORIGIN);
        Self {
            store,
            clock,
            key: Key::owned(CASE, name),
            limits: limits.to_vec(),
        }
    }

    /// Sets the clock to a time after the origin.
    pub(crate) fn at(&self, after: Duration) {
        self.clock.set(ORIGIN + after);
    }

    pub(crate) async fn check(&self, cost: u64) -> Decision {
        self.apply(Operation::Check, cost).await
    }

    pub(crate) async fn peek(&self) -> Decision {
        self.check(0).await
    }

    /// Checks for a request that would wait up to `longest`.
    pub(crate) async fn check_with_max_wait(&self, cost: u64, longest: Duration) -> Decision {
        let charges: Vec<Charge<'_>> = self
            .charges(cost)
            .map(|charge| charge.max_wait(longest))
            .collect();
        self.store.check(&charges).await.unwrap()
    }

    /// Calls the store, and returns the future of the decision.
    pub(crate) fn start(&self, cost: u64) -> S::Future {
        let charges: Vec<Charge<'_>> = self.charges(cost).collect();
        self.store.check(&charges)
    }

    pub(crate) async fn apply(&self, operation: Operation, cost: u64) -> Decision {
        let charges: Vec<Charge<'_>> = self.charges(cost).collect();
        self.store.apply(operation, &charges).await.unwrap()
    }

    /// Charges a single limit, even into debt.
    pub(crate) async fn charge(&self, limit: usize, units: u64) {
        let charge = Charge::new(LIMITS[limit], &self.limits[limit], &self.key).cost(units);
        self.store
            .apply(Operation::Charge, &[charge])
            .await
            .unwrap();
    }

    /// Takes the remaining units, at most `most`, and returns the number of taken units.
    pub(crate) async fn drain(&self, most: u64) -> (u64, Decision) {
        let left = remaining(&self.peek().await).min(most);
        (left, self.check(left).await)
    }

    fn charges(&self, cost: u64) -> impl Iterator<Item = Charge<'_>> {
        self.limits
            .iter()
            .zip(LIMITS)
            .map(move |(quota, name)| Charge::new(name, quota, &self.key).cost(cost))
    }
}

/// Returns the remaining units of all limits.
pub(crate) fn remaining(decision: &Decision) -> u64 {
    decision
        .statuses()
        .iter()
        .map(|standing| standing.remaining())
        .min()
        .unwrap()
}

/// Returns the time until all limits are full.
pub(crate) fn reset_after(decision: &Decision) -> Duration {
    decision
        .statuses()
        .iter()
        .map(|standing| standing.reset_after())
        .max()
        .unwrap()
}
