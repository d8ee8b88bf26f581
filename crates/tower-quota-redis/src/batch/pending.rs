//! A decision that waits to be sent.

use std::time::Instant;

use tokio::sync::oneshot;
use tower_quota_core::{Decision, Operation};

use crate::error::RedisStoreError;
use crate::question::Question;

pub(super) struct Pending {
    /// The number of arrival, set by the queue.
    pub(super) number: u64,
    pub(super) question: Question,
    pub(super) answer: oneshot::Sender<Result<Decision, RedisStoreError>>,
    pub(super) arrived: Instant,
}

impl Pending {
    /// Returns whether an operation settles an earlier decision, which is worth doing late and without a caller.
    pub(super) const fn settles(operation: Operation) -> bool {
        matches!(operation, Operation::Refund { .. } | Operation::Charge)
    }

    /// Sends the answer to the caller, who may have left.
    pub(super) fn answer(self, outcome: Result<Decision, RedisStoreError>) {
        let _ = self.answer.send(outcome);
    }
}
