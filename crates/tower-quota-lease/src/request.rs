use std::sync::Arc;

use smallvec::SmallVec;
use tower_quota_core::{
    Charge, ChargeMode, Decision, Left, LimitStatus, Operation, Outcome, Timestamp,
};

use crate::answer::AnswerTimes;
use crate::lease_call::DueLeases;
use crate::plan::{LeasePlan, is_leasable};
use crate::pool::{CallEnd, Pool, SMALLEST};
use crate::pools::Pools;
use crate::stats::LeaseStats;

const NEVER: Timestamp = Timestamp::from_micros(u64::MAX);

/// A request with its leased units, which return to the leases if the request is dropped before
/// admission.
pub(crate) struct LeasedRequest {
    pools: Arc<Pools>,
    parts: SmallVec<[LeasedCharge; 1]>,
    /// The instant on the clock of this instance.
    now: u64,
    is_leasable: bool,
    is_admitted: bool,
    pub(crate) due: Vec<DueLeases>,
}

struct LeasedCharge {
    by: By,
    digest: u128,
    status: LimitStatus,
    /// The instant on the store's clock.
    at: Timestamp,
    plan: Option<LeasePlan>,
    is_leasable: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Lease,
    Pause,
    Store,
}

impl LeasedRequest {
    pub(crate) fn take(pools: &Arc<Pools>, charges: &[Charge<'_>]) -> Self {
        // A refund has one instant, but leased units were charged earlier. Forced charges have to
        // reach the store even if a pool would refuse.
        let needs_store =
            |charge: &Charge<'_>| charge.is_refundable() || charge.mode() == ChargeMode::Forced;
        let mut request = Self {
            pools: Arc::clone(pools),
            parts: SmallVec::new(),
            now: pools.now(),
            is_leasable: !charges.iter().any(needs_store),
            is_admitted: false,
            due: Vec::new(),
        };
        for charge in charges {
            let part = request.part(charge);
            request.parts.push(part);
        }
        request
    }

    fn part(&mut self, charge: &Charge<'_>) -> LeasedCharge {
        let (now, units) = (self.now, charge.units());
        let digest = self.pools.hasher.digest(charge.key());
        let mut part = LeasedCharge {
            by: By::Store,
            digest,
            // Report 0 units, because none are certain without an answer of the store.
            status: LimitStatus {
                name: charge.name(),
                limit: charge.quota().capacity(),
                left: Left::new(0, charge.quota().window()),
                taken: 0,
                outcome: Outcome::Allow,
                is_shadow: charge.is_shadow(),
            },
            at: NEVER,
            plan: None,
            is_leasable: self.is_leasable && is_leasable(charge),
        };
        let shard = &mut *self.pools.shard(digest);
        let pool = shard.pool(digest, charge.name(), charge.quota());
        if let Some(pool) = pool.filter(|_| part.is_leasable) {
            if let Some(at) = pool.grants.take(now, units) {
                pool.note(now, units);
                let want = pool.next_lease(now, SMALLEST);
                DueLeases::add(&mut self.due, digest, charge.key(), want);
                part.by = By::Lease;
                part.status = pool.status(now, units);
                part.at = at;
                return part;
            }
            if let Some((status, at)) = pool.refusal(now, units) {
                pool.note(now, units);
                part.by = By::Pause;
                part.status = status;
                part.at = at;
                return part;
            }
        }
        part.plan = LeasePlan::of(charge, self.pools.longest);
        part
    }

    pub(crate) fn decide(&mut self) -> Option<Decision> {
        // Send a request without charges to the store, because the decision has the store's
        // instant.
        if !self.parts.is_empty() && self.parts.iter().all(|part| part.by == By::Lease) {
            self.is_admitted = true;
            self.count(|stats| stats.by_lease += 1);
        } else if self.parts.iter().any(|part| part.by == By::Pause) {
            self.count(|stats| stats.refused_here += 1);
        } else {
            return None;
        }
        let statuses = self.parts.iter().map(|part| part.status(self.is_admitted));
        let at = self.charged_at();
        Some(Decision::from_statuses(Operation::Check, at, statuses))
    }

    pub(crate) fn is_unplanned(&self) -> bool {
        let mut parts = self.parts.iter();
        parts.all(|part| part.by == By::Store && part.plan.is_none())
    }

    pub(crate) fn asked<'c>(&'c self, charges: &[Charge<'c>]) -> Vec<Charge<'c>> {
        let mut asked = Vec::new();
        for (part, charge) in self.parts.iter().zip(charges) {
            if part.by == By::Store {
                asked.push(LeasePlan::stored(part.plan.as_ref(), charge));
            }
        }
        asked
    }

    /// Counts in the shard of a key, so that threads seldom collide.
    pub(crate) fn count(&self, add: impl FnOnce(&mut LeaseStats)) {
        let digest = self.parts.first().map_or(0, |part| part.digest);
        add(&mut self.pools.shard(digest).stats);
    }

    /// Notes the demand, and finds the due leases. A request that the refusal cache refuses needs
    /// no leases.
    pub(crate) fn note(&mut self, charges: &[Charge<'_>], is_refused: bool) {
        for (part, charge) in self.parts.iter().zip(charges) {
            let plan = part.plan.as_ref().filter(|_| part.is_leasable);
            let Some(plan) = plan else { continue };
            let (digest, now, units) = (part.digest, self.now, charge.units());
            self.pools.open(digest, charge.name(), plan, now);
            let want = self.change(part, plan, |pool| {
                pool.note(now, units);
                if is_refused {
                    None
                } else {
                    pool.begin_call(now, units)
                }
            });
            DueLeases::add(&mut self.due, digest, charge.key(), want.flatten());
        }
    }

    /// Returns the calls for leases to wait for, or no calls if the request has to ask the store anyway.
    pub(crate) fn calls_in_flight(&self, charges: &[Charge<'_>]) -> Vec<CallEnd> {
        let mut calls = Vec::new();
        for (part, charge) in self.parts.iter().zip(charges) {
            if part.by != By::Store {
                continue;
            }
            let plan = part.plan.as_ref().filter(|_| part.is_leasable);
            let call =
                plan.and_then(|plan| self.change(part, plan, |pool| pool.call_for(charge.units())));
            let Some(call) = call.flatten() else {
                return Vec::new();
            };
            calls.push(call);
        }
        calls
    }

    /// Forgets the demand of a request that waits, because the request notes it again afterwards.
    pub(crate) fn forget_demand(&self, charges: &[Charge<'_>]) {
        for (part, charge) in self.parts.iter().zip(charges) {
            if let Some(plan) = &part.plan {
                self.change(part, plan, |pool| pool.demand.forget(charge.units()));
            }
        }
    }

    pub(crate) fn complete(&mut self, answer: &Decision, is_of_store: bool) -> Decision {
        self.is_admitted = answer.is_allowed();
        let times = AnswerTimes {
            sent: self.now,
            received: self.pools.now(),
            at: answer.at(),
        };
        let mut answers = answer.statuses().iter();
        let statuses = self.parts.iter().filter_map(|part| {
            if part.by != By::Store {
                return Some(part.status(self.is_admitted));
            }
            let mut status = *answers.next()?;
            if let Some(plan) = &part.plan {
                status = plan.own_status(&status, 0);
                self.change(part, plan, |pool| {
                    pool.complete(&mut status, times, is_of_store);
                });
            }
            Some(status)
        });
        let at = self.charged_at().min(answer.at());
        Decision::from_statuses(Operation::Check, at, statuses)
    }

    pub(crate) fn forget_answers(&self) {
        for part in &self.parts {
            if let Some(plan) = &part.plan {
                self.change(part, plan, Pool::forget_answer);
            }
        }
    }

    fn change<R>(
        &self,
        part: &LeasedCharge,
        plan: &LeasePlan,
        change: impl FnOnce(&mut Pool) -> R,
    ) -> Option<R> {
        let shard = &mut *self.pools.shard(part.digest);
        let pool = shard.pool(part.digest, part.status.name, &plan.asked);
        pool.map(change)
    }

    /// Returns the instant of the first lease, because a refund with an early instant never gives
    /// back too much.
    fn charged_at(&self) -> Timestamp {
        let instants = self.parts.iter().map(|part| part.at);
        instants.min().unwrap_or(NEVER)
    }
}

impl Drop for LeasedRequest {
    fn drop(&mut self) {
        if self.is_admitted {
            return;
        }
        for part in &self.parts {
            if part.by == By::Lease {
                let LimitStatus { name, taken, .. } = part.status;
                let now = self.pools.now();
                let shard = &mut *self.pools.shard(part.digest);
                match shard.put_back(part.digest, name, taken, part.at, now) {
                    Some(pool) => pool.demand.forget(taken),
                    // The lease has ended during the call of the store.
                    None => shard.stats.units_lost += taken,
                }
            }
        }
    }
}

impl LeasedCharge {
    fn status(&self, is_admitted: bool) -> LimitStatus {
        LimitStatus {
            taken: if is_admitted { self.status.taken } else { 0 },
            ..self.status
        }
    }
}
