//! Operations other than checks.

use core::future::ready;
use std::sync::Arc;

use smallvec::SmallVec;
use tower_quota_core::{
    Charge, Clock, Decision, Left, LimitStatus, Operation, Outcome, RefusalFuture, Store, Timestamp,
};

use crate::plan::Plan;
use crate::shared::Shared;

/// What an answer of the store does not have: the limit's own capacity, and the units of leases.
struct Own {
    capacity: u64,
    held: u64,
    /// Whether leases admit a peek that the store refuses.
    is_enough: bool,
}

impl<S: Store, C: Clock> Shared<S, C> {
    pub(crate) fn apply(
        self: &Arc<Self>,
        operation: Operation,
        charges: &[Charge<'_>],
    ) -> RefusalFuture<S> {
        match operation {
            Operation::Refund { taken_at } => self.refund(taken_at, charges),
            Operation::Reset => {
                for charge in charges {
                    let digest = self.pools.digest(charge.key());
                    self.pools.shard(digest).forget(digest, charge.name());
                }
                self.forward(operation, charges)
            }
            _ => self.forward(operation, charges),
        }
    }

    /// Refunds charges into their leases, or in the store if the leases have ended.
    fn refund(&self, taken_at: Timestamp, charges: &[Charge<'_>]) -> RefusalFuture<S> {
        let now = self.now();
        let mut known: SmallVec<[Option<LimitStatus>; 3]> = SmallVec::new();
        let mut rest: SmallVec<[Charge<'_>; 3]> = SmallVec::new();
        for charge in charges {
            let digest = self.pools.digest(charge.key());
            let shard = &mut *self.pools.shard(digest);
            let pool = shard.put_back(digest, charge.name(), charge.units(), taken_at, now);
            let status = pool.map(|pool| pool.status(now, 0));
            if status.is_none() {
                rest.push(*charge);
            }
            known.push(status);
        }
        let operation = Operation::Refund { taken_at };
        let answer = match rest.is_empty() {
            true => Box::pin(ready(Ok(Decision::default()))),
            false => self.forward(operation, &rest),
        };
        Box::pin(async move {
            let answer = answer.await?;
            let mut answers = answer.statuses().iter().copied();
            let statuses = known
                .into_iter()
                .filter_map(|status| status.or_else(|| answers.next()));
            Ok(Decision::from_statuses(
                operation,
                answer.at().max(taken_at),
                statuses,
            ))
        })
    }

    /// Applies an operation in the store, by the stored quotas.
    fn forward(&self, operation: Operation, charges: &[Charge<'_>]) -> RefusalFuture<S> {
        let now = self.now();
        let plans: SmallVec<[Option<Plan>; 3]> = charges
            .iter()
            .map(|charge| Plan::of(charge, self.longest))
            .collect();
        let mut stored: SmallVec<[Charge<'_>; 3]> = SmallVec::new();
        let mut own: SmallVec<[Own; 3]> = SmallVec::new();
        for (charge, plan) in charges.iter().zip(&plans) {
            stored.push(match plan {
                Some(plan) => charge.with_quota(&plan.stored),
                None => *charge,
            });
            let digest = self.pools.digest(charge.key());
            let mut shard = self.pools.shard(digest);
            let pool = shard.pool(digest, charge.name(), charge.quota());
            let held = pool.map_or(0, |pool| pool.grants.units(now));
            own.push(Own {
                capacity: charge.quota().capacity(),
                held,
                is_enough: operation == Operation::Peek && held >= charge.units().max(1),
            });
        }
        let answer = self.store.apply(operation, &stored);
        Box::pin(async move {
            let answer = answer.await?;
            let statuses = answer.statuses().iter().zip(own);
            let statuses = statuses.map(|(status, own)| own.status(status));
            Ok(Decision::from_statuses(operation, answer.at(), statuses))
        })
    }
}

impl Own {
    fn status(&self, status: &LimitStatus) -> LimitStatus {
        let mut status = *status;
        if self.held > 0 || status.limit != self.capacity {
            let remaining = status.remaining().saturating_add(self.held);
            status.left = Left::new(remaining.min(self.capacity), status.reset_after());
            status.limit = self.capacity;
        }
        if self.is_enough && status.outcome.is_refusal() {
            status.outcome = Outcome::Allow;
        }
        status
    }
}
