//! Scripted stores, and readers of the requests of an inner service.

use std::time::Duration;

use tower_quota::{
    Decision, Degraded, Key, Quota, Store,
    store::{Charge, Operation},
};
use tower_quota_testkit::ScriptedAnswer;

use crate::shared::secs;
pub(crate) use tower_quota_testkit::ScriptedStore;

pub(crate) use crate::shared::{
    Answer, FAILURE, Inner, Limited, WITH_X, failing_store, field, retry_after, text,
};

/// The extensions of the last request.
pub(crate) trait LastRequest {
    /// Returns the decision that was attached to the request.
    fn last_seen(&self) -> Option<Decision>;

    /// Returns how long the request waited for its turn.
    fn last_wait(&self) -> Duration;

    /// Returns whether the request was marked as decided without the store.
    fn last_degraded(&self) -> bool;
}

impl LastRequest for Inner {
    fn last_seen(&self) -> Option<Decision> {
        self.requests.lock().unwrap().last().unwrap().get().cloned()
    }

    fn last_wait(&self) -> Duration {
        self.last_seen().unwrap().wait()
    }

    fn last_degraded(&self) -> bool {
        self.requests
            .lock()
            .unwrap()
            .last()
            .unwrap()
            .get::<Degraded>()
            .is_some()
    }
}

/// Returns a store in memory that answers at the second poll.
pub(crate) fn slow_store() -> ScriptedStore {
    let store = ScriptedStore::new();
    store.set_default(ScriptedAnswer::memory().yielding());
    store
}

/// The name of an operation, and the costs of its charges.
pub(crate) type Call = (&'static str, Vec<u64>);

/// The controls of a scripted store.
pub(crate) trait StoreControl {
    /// Makes the store fail, or decide again.
    fn fail(&self, fails: bool);

    /// Returns how many charges each operation had.
    fn charge_counts(&self) -> Vec<usize>;

    /// Returns all operations other than checks, in order.
    fn settled(&self) -> Vec<Call>;

    /// Waits until [`settled`](Self::settled) returns these calls.
    async fn until_settled(&self, expected: &[(&'static str, &[u64])]);

    /// Returns the units left of a global limit.
    fn left(&self, limit: &'static str, quota: Quota) -> u64;
}

impl StoreControl for ScriptedStore {
    fn fail(&self, fails: bool) {
        self.set_default(if fails {
            ScriptedAnswer::error(FAILURE)
        } else {
            ScriptedAnswer::memory()
        });
    }

    fn charge_counts(&self) -> Vec<usize> {
        self.operations()
            .iter()
            .map(|recorded| recorded.charges.len())
            .collect()
    }

    fn settled(&self) -> Vec<Call> {
        let name = |operation| match operation {
            Operation::Check => "check",
            Operation::Charge | Operation::Surcharge { .. } => "charge",
            Operation::Refund { .. } => "refund",
            Operation::Renew { .. } => "renew",
            Operation::Reset => "reset",
            Operation::Refuse => "refuse",
            Operation::Peek => "peek",
        };
        let settling = self
            .operations()
            .into_iter()
            .filter(|recorded| recorded.operation != Operation::Check);
        settling
            .map(|recorded| {
                (
                    name(recorded.operation),
                    recorded.charges.iter().map(|charge| charge.units).collect(),
                )
            })
            .collect()
    }

    async fn until_settled(&self, expected: &[(&'static str, &[u64])]) {
        let reached = || {
            self.settled()
                .iter()
                .map(|(name, costs)| (*name, &costs[..]))
                .eq(expected.iter().copied())
        };
        let wait = async {
            while !reached() {
                tokio::task::yield_now().await
            }
        };
        let waited = tokio::time::timeout(secs(5), wait).await;
        assert!(
            waited.is_ok(),
            "{:?} instead of {expected:?}",
            self.settled()
        );
    }

    fn left(&self, limit: &'static str, quota: Quota) -> u64 {
        let Ok(decision) = self
            .memory()
            .check(&[Charge::new(limit, &quota, &Key::EVERYONE).cost(0)])
            .into_inner();
        decision.statuses()[0].remaining()
    }
}

#[expect(clippy::disallowed_methods, reason = "tokio's paused clock")]
pub(crate) fn tokio_now() -> tokio::time::Instant {
    tokio::time::Instant::now()
}
