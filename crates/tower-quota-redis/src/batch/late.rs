//! Refunds answers that arrive after their callers have left.
//!
//! The caller has treated the store as unavailable, so the units of the decision must not stay taken. A late
//! [`Charge`](Operation::Charge) stays taken, because the caller settles a request that has run. So does a
//! [forced](ChargeMode::Forced) charge, because its caller reports units that are spent, and a late renewal, because its caller
//! repeats the call for the same hold.

use core::time::Duration;
use std::sync::Arc;

use tower_quota_core::{ChargeMode, Operation};

use super::pending::Pending;
use super::{Batcher, Outcome, bytes_of};
use crate::clock::now;
use crate::error::RedisStoreError;
use crate::link::LateAnswer;
use crate::store_request::StoreRequest;
use crate::wire::Reply;

/// The longest wait for a late answer, and the longest wait of its refund for the server.
const LATEST: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_millis(50);

impl Batcher {
    /// Answers a decision, and refunds it if the caller has left.
    ///
    /// A caller that leaves before the deadline only gets [refundable](tower_quota_core::Charge::refundable) charges back,
    /// because a client could otherwise evade a limit by hanging up.
    pub(super) fn answer(self: &Arc<Self>, pending: Pending, outcome: Outcome) {
        let deadline = pending.arrived + self.caller.deadline;
        if let Err(outcome) = pending.answer.send(outcome) {
            self.refund(&pending.request, &outcome, now() >= deadline);
        }
    }

    pub(super) fn await_late(self: &Arc<Self>, answer: LateAnswer, requests: Vec<StoreRequest>) {
        let batcher = Arc::clone(self);
        self.spawn_late(async move {
            let Ok(Ok(reply)) = tokio::time::timeout(LATEST, answer).await else {
                return;
            };
            let mut reply = Reply::new(bytes_of(&reply));
            for request in requests {
                let outcome = batcher.caller.read(&mut reply, &request);
                batcher.refund(&request, &outcome, true);
            }
        });
    }

    fn refund(self: &Arc<Self>, request: &StoreRequest, outcome: &Outcome, is_late: bool) {
        let Ok(decision) = outcome else {
            return;
        };
        if request.template.operation != Operation::Check || !decision.is_allowed() {
            return;
        }
        let parts = request.template.charges.iter().zip(decision.statuses());
        let units = parts.map(|(part, status)| match part.mode {
            ChargeMode::Forced => 0,
            _ if is_late || part.is_refundable => status.taken,
            _ => 0,
        });
        let refund = request.to_refund(decision, units);
        if refund.template.charges.iter().all(|part| part.cost == 0) {
            return;
        }
        let batcher = Arc::clone(self);
        self.spawn_late(async move {
            let latest = now() + LATEST;
            while now() < latest {
                // Wait while the server is overloaded or recovering, because refunds at once took half of the calls. Do
                // not wait for the end of each call, because a caller may always have one under way.
                if batcher.has_time_for_refund() {
                    match batcher.decide(refund.clone()).await {
                        Err(error) if is_unsent(&error) => {}
                        _ => return,
                    }
                }
                #[expect(clippy::disallowed_methods, reason = "the server is waited for")]
                tokio::time::sleep(RETRY).await;
            }
        });
    }

    fn has_time_for_refund(&self) -> bool {
        let queue = self.lock();
        queue.breaker.is_closed() && queue.is_empty()
    }

    fn spawn_late(&self, task: impl Future<Output = ()> + Send + 'static) {
        let late = Arc::clone(&self.late);
        self.caller.settings.spawn(async move {
            task.await;
            drop(late);
        });
    }
}

const fn is_unsent(error: &RedisStoreError) -> bool {
    matches!(
        error,
        RedisStoreError::BreakerOpen { .. }
            | RedisStoreError::Overloaded { .. }
            | RedisStoreError::Connect { .. }
    )
}
