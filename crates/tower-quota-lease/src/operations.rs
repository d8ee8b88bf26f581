use core::future::ready;

use tower_quota_core::{Charge, Decision, LimitStatus, Operation, Outcome, RefusalFuture, Store};

use crate::plan::LeasePlan;
use crate::shared::LeaseState;

struct Known {
    plan: Option<LeasePlan>,
    units: u64,
    held: u64,
    /// The status after a refund into a lease, which needs no call of the store.
    refunded: Option<LimitStatus>,
}

impl<S: Store> LeaseState<S> {
    pub(crate) fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> RefusalFuture<S> {
        let known = charges.iter().map(|charge| self.known(operation, charge));
        let known: Vec<Known> = known.collect();
        let mut rest = Vec::new();
        for (charge, known) in charges.iter().zip(&known) {
            if known.refunded.is_none() {
                rest.push(LeasePlan::stored(known.plan.as_ref(), charge));
            }
        }
        if let Operation::Refund { taken_at } = operation
            && rest.is_empty()
        {
            let statuses = known.iter().filter_map(|known| known.refunded);
            let decision = Decision::from_statuses(operation, taken_at, statuses);
            return Box::pin(ready(Ok(decision)));
        }
        let answer = self.store.apply(operation, &rest);
        drop(rest);
        Box::pin(async move {
            let answer = answer.await?;
            let mut answers = answer.statuses().iter();
            let statuses = known.iter().filter_map(|known| match known.refunded {
                None => Some(known.status(answers.next()?, operation)),
                refunded => refunded,
            });
            Ok(Decision::from_statuses(operation, answer.at(), statuses))
        })
    }

    fn known(&self, operation: Operation, charge: &Charge<'_>) -> Known {
        let (units, limit, now) = (charge.units(), charge.name(), self.pools.now());
        let digest = self.pools.hasher.digest(charge.key());
        let shard = &mut *self.pools.shard(digest);
        let refunded = match operation {
            // No lease decides a refundable charge, but a lease may have been charged at the same instant.
            Operation::Refund { taken_at } if !charge.is_refundable() => {
                shard.put_back(digest, limit, units, taken_at, now)
            }
            _ => None,
        };
        let refunded = refunded.map(|pool| pool.status(now, 0));
        if operation == Operation::Reset {
            shard.forget(digest, limit);
        }
        let pool = shard.pool(digest, limit, charge.quota());
        Known {
            plan: LeasePlan::of(charge, self.pools.longest),
            units,
            held: pool.map_or(0, |pool| pool.grants.units(now)),
            refunded,
        }
    }
}

impl Known {
    fn status(&self, status: &LimitStatus, operation: Operation) -> LimitStatus {
        let Some(plan) = &self.plan else {
            return *status;
        };
        let mut status = plan.own_status(status, self.held);
        // Admit the request if leases have the units, even if the store has none.
        let is_held = self.held >= self.units.max(1);
        if operation == Operation::Peek && is_held && status.outcome.is_refusal() {
            status.outcome = Outcome::Allow;
        }
        status
    }
}
