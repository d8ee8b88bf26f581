use std::time::Instant;

use tokio::sync::oneshot;
use tower_quota_core::{Decision, Operation};

use crate::error::RedisStoreError;
use crate::store_request::StoreRequest;
use crate::template::Template;

pub(super) struct Pending {
    pub(super) number: u64,
    pub(super) request: StoreRequest,
    pub(super) answer: oneshot::Sender<Result<Decision, RedisStoreError>>,
    pub(super) arrived: Instant,
}

impl Pending {
    /// Returns whether to send the operation even late and without a caller, because it settles an earlier decision.
    pub(super) const fn settles(template: &Template) -> bool {
        matches!(
            template.operation,
            Operation::Refund { .. } | Operation::Charge | Operation::Surcharge { .. }
        )
    }

    pub(super) fn answer(self, outcome: Result<Decision, RedisStoreError>) {
        let _ = self.answer.send(outcome);
    }
}
