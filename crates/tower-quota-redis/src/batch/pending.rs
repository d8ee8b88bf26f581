//! A decision that waits to be sent.

use std::time::Instant;

use tokio::sync::oneshot;
use tower_quota_core::{Decision, Operation};

use crate::error::RedisStoreError;
use crate::question::Question;

pub(super) struct Pending {
    pub(super) question: Question,
    pub(super) answer: oneshot::Sender<Result<Decision, RedisStoreError>>,
    /// The instant at which its caller gives up; `None` if that is too far away for an `Instant`.
    pub(super) expiry: Option<Instant>,
}

impl Pending {
    /// Returns whether it gives back units, which is worth doing late and without a caller.
    pub(super) fn is_refund(&self) -> bool {
        matches!(self.question.template.operation, Operation::Refund { .. })
    }

    /// Sends the answer to the caller, which may have given up.
    pub(super) fn answer(self, outcome: Result<Decision, RedisStoreError>) {
        let _ = self.answer.send(outcome);
    }
}
