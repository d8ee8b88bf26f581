use std::time::Instant;

use tokio::sync::oneshot;
use tower_quota_core::{Decision, Operation};

use crate::error::RedisStoreError;
use crate::store_request::StoreRequest;
use crate::template::{ChargeTemplate, Template};

pub(super) struct Pending {
    pub(super) number: u64,
    pub(super) request: StoreRequest,
    pub(super) answer: oneshot::Sender<Result<Decision, RedisStoreError>>,
    pub(super) arrived: Instant,
}

impl Pending {
    /// Returns whether to send the operation even late and without a caller, because it settles an earlier decision.
    ///
    /// A late charge of holds alone is not sent, because the caller takes the holds again.
    pub(super) fn settles(template: &Template) -> bool {
        match template.operation {
            Operation::Refund { .. } => true,
            Operation::Charge | Operation::Surcharge { .. } => {
                !template.charges.iter().all(ChargeTemplate::is_hold)
            }
            _ => false,
        }
    }

    pub(super) fn answer(self, outcome: Result<Decision, RedisStoreError>) {
        let _ = self.answer.send(outcome);
    }
}
