//! Answers that arrive after their callers have left.
//!
//! The caller treats the store as unavailable, so the units of a [refundable](tower_quota_core::Charge::refundable) charge
//! must not stay taken.

use core::time::Duration;
use std::sync::Arc;

use redis::Value;
use tower_quota_core::Operation;

use super::pending::Pending;
use super::{Batcher, Outcome, bytes_of, now};
use crate::error::RedisStoreError;
use crate::question::Question;
use crate::wire::Reply;

/// How long a late answer is awaited, and how long its refund may wait for the breaker.
const LATEST: Duration = Duration::from_secs(10);

impl Batcher {
    /// Answers a decision, and refunds it if the caller has left.
    pub(super) fn answer(self: &Arc<Self>, pending: Pending, outcome: Outcome) {
        let Pending {
            question, answer, ..
        } = pending;
        if let Err(outcome) = answer.send(outcome)
            && question.is_refundable()
        {
            self.refund_late(&question, &outcome);
        }
    }

    /// Waits for an answer after its deadline, if there are charges to refund.
    pub(super) fn await_late(
        self: &Arc<Self>,
        answer: impl Future<Output = Result<Value, RedisStoreError>> + Send + 'static,
        questions: Vec<Question>,
    ) {
        if !questions.iter().any(Question::is_refundable) {
            return;
        }
        let batcher = Arc::clone(self);
        self.caller.settings.spawn(async move {
            let Ok(Ok(reply)) = tokio::time::timeout(LATEST, answer).await else {
                return;
            };
            let mut reply = Reply::new(bytes_of(&reply));
            for question in questions {
                let outcome = batcher.caller.read(&mut reply, &question);
                if question.is_refundable() {
                    batcher.refund_late(&question, &outcome);
                }
            }
        });
    }

    fn refund_late(self: &Arc<Self>, question: &Question, outcome: &Outcome) {
        let Ok(decision) = outcome else {
            return;
        };
        if !decision.is_allowed() {
            return;
        }
        let parts = question.template.charges.iter().zip(decision.statuses());
        let units = parts.map(|(part, status)| match part.is_refundable {
            true => status.taken,
            false => 0,
        });
        let refund = question.to_refund(decision, units);
        let batcher = Arc::clone(self);
        self.caller.settings.spawn(async move {
            let latest = now() + LATEST;
            // The breaker may still be open because of the call that was late.
            while batcher.ask(refund.clone(), now()).is_err() && now() < latest {
                #[expect(clippy::disallowed_methods, reason = "the breaker is waited for")]
                tokio::time::sleep(batcher.caller.deadline).await;
            }
        });
    }
}

impl Question {
    /// Returns whether a decision gives units back if its caller has left.
    fn is_refundable(&self) -> bool {
        let mut charges = self.template.charges.iter();
        self.template.operation == Operation::Check && charges.any(|part| part.is_refundable)
    }
}
