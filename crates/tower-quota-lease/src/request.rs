//! A request: its units come from leases, or the store decides.

use core::time::Duration;
use std::sync::Arc;

use smallvec::SmallVec;
use tokio::sync::oneshot;
use tower_quota_core::{
    Charge, ChargeMode, Clock, Decision, Key, Left, LimitStatus, Name, Operation, Outcome,
    RefusalFuture, Store, Timestamp,
};

use crate::answer::AnswerTimes;
use crate::lease_call::LeaseCall;
use crate::plan::{Plan, is_leasable};
use crate::pool::{SMALLEST, Want};
use crate::shared::Shared;
use crate::stats::LeaseStats;

/// A request with a part for each charge.
pub(crate) struct Request {
    parts: SmallVec<[Part; 1]>,
    /// The instant of the request, on the clock of this instance.
    now: u64,
    is_leasable: bool,
}

enum Part {
    /// Units from a lease, and the status of the limit.
    Leased(Taken, LimitStatus),
    /// A refusal by a pool, and its instant on the store's clock.
    Refused(LimitStatus, Timestamp),
    /// A question for the store.
    Asked(Asked),
}

struct Taken {
    digest: u128,
    units: u64,
    charged_at: Timestamp,
}

struct Asked {
    digest: u128,
    limit: Name,
    capacity: u64,
    window: Duration,
    is_shadow: bool,
    plan: Option<Plan>,
    is_leasable: bool,
}

/// The next step of a request that leases do not decide.
pub(crate) enum Step {
    /// The refusal cache refuses the request.
    Refuse(Decision),
    /// Wait for these leases, then look for units again.
    Wait(Answered),
    Ask,
}

/// Receivers that end when the answers are recorded.
pub(crate) type Answered = Vec<oneshot::Receiver<()>>;

impl Request {
    /// Takes the units of a request from leases, as far as the leases have enough.
    pub(crate) fn take<S: Store, C: Clock>(
        shared: &Arc<Shared<S, C>>,
        charges: &[Charge<'_>],
    ) -> Self {
        // A refund has one instant, and leased units were charged earlier than the units of other limits. Forced charges
        // have to reach the store even if a pool would refuse the request.
        let needs_store =
            |charge: &Charge<'_>| charge.is_refundable() || charge.mode() == ChargeMode::Forced;
        let mut request = Self {
            parts: SmallVec::new(),
            now: shared.now(),
            is_leasable: !charges.iter().any(needs_store),
        };
        let mut leases = DueLeases::default();
        for (position, charge) in charges.iter().enumerate() {
            let is_last = position + 1 == charges.len();
            let part = request.part(shared, charge, is_last, &mut leases);
            request.parts.push(part);
        }
        leases.spawn(shared);
        request
    }

    fn part<S: Store, C: Clock>(
        &self,
        shared: &Shared<S, C>,
        charge: &Charge<'_>,
        is_last: bool,
        leases: &mut DueLeases,
    ) -> Part {
        let (now, units, limit) = (self.now, charge.units(), charge.name());
        let digest = shared.pools.digest(charge.key());
        let is_leasable = self.is_leasable && is_leasable(charge);
        if is_leasable {
            let shard = &mut *shared.pools.shard(digest);
            if let Some(pool) = shard.pool(digest, limit, charge.quota()) {
                if let Some(charged_at) = pool.grants.take(now, units) {
                    pool.note(now, units);
                    leases.add(pool.next_lease(now, SMALLEST), digest, charge.key());
                    let status = pool.status(now, units);
                    let is_by_lease = is_last && self.is_leased();
                    shard.stats.by_lease += u64::from(is_by_lease);
                    let taken = Taken {
                        digest,
                        units,
                        charged_at,
                    };
                    return Part::Leased(taken, status);
                }
                if let Some((status, at)) = pool.refusal(now, units) {
                    pool.note(now, units);
                    shard.stats.refused_here += u64::from(!self.is_refused());
                    return Part::Refused(status, at);
                }
            }
        }
        Part::Asked(Asked {
            digest,
            limit,
            capacity: charge.quota().capacity(),
            window: charge.quota().window(),
            is_shadow: charge.is_shadow(),
            plan: Plan::of(charge, shared.longest),
            is_leasable,
        })
    }

    fn is_leased(&self) -> bool {
        self.parts
            .iter()
            .all(|part| matches!(part, Part::Leased(..)))
    }

    fn is_refused(&self) -> bool {
        self.parts
            .iter()
            .any(|part| matches!(part, Part::Refused(..)))
    }

    /// Returns whether the store has all limits of the request under their own quotas.
    fn is_unplanned(&self) -> bool {
        let mut parts = self.parts.iter();
        parts.all(|part| matches!(part, Part::Asked(asked) if asked.plan.is_none()))
    }

    /// Returns the decision of the pools, if they decide the request.
    ///
    /// A request without charges asks the store, because the decision has the store's instant.
    pub(crate) fn decide<S: Store, C: Clock>(&self, shared: &Shared<S, C>) -> Option<Decision> {
        let is_admitted = self.is_leased() && !self.parts.is_empty();
        if !is_admitted && !self.is_refused() {
            return None;
        }
        if !is_admitted {
            self.put_back(shared);
        }
        let statuses = self.parts.iter().map(|part| match part {
            Part::Leased(taken, status) if !is_admitted => taken.untaken(status),
            Part::Leased(_, status) | Part::Refused(status, _) => *status,
            Part::Asked(asked) => asked.unknown(),
        });
        Some(Decision::from_statuses(
            Operation::Check,
            self.charged_at(),
            statuses,
        ))
    }

    /// Returns the next step of a request that the pools do not decide. Calls the store for the leases that are due.
    pub(crate) fn begin<S: Store, C: Clock>(
        &self,
        shared: &Arc<Shared<S, C>>,
        charges: &[Charge<'_>],
    ) -> Step {
        let refusal = match self.is_unplanned() {
            true => None,
            false => shared.store.refusal(&self.asked_charges(charges)),
        };
        let mut leases = DueLeases::default();
        let mut waits = false;
        for (part, charge) in self.parts.iter().zip(charges) {
            let Part::Asked(asked) = part else { continue };
            let plan = asked.plan.as_ref().filter(|_| asked.is_leasable);
            let shard = &mut *shared.pools.shard(asked.digest);
            let pool = plan.and_then(|plan| shard.open(asked.digest, asked.limit, plan, self.now));
            let Some(pool) = pool else { continue };
            pool.note(self.now, charge.units());
            if refusal.is_none() {
                let calls = pool.begin_calls(self.now, charge.units());
                leases.add(calls.lease, asked.digest, charge.key());
                waits |= calls.waits;
            }
        }
        if let Some(refusal) = refusal {
            self.count(shared, |stats| stats.refused_here += 1);
            return Step::Refuse(self.complete(shared, &refusal, None));
        }
        let leases = leases.spawn(shared);
        if waits {
            self.put_back(shared);
            return Step::Wait(leases);
        }
        Step::Ask
    }

    /// Sends the charges that the leases do not cover to the store.
    ///
    /// Returns the future of the answer, and the refusal to use if the store fails.
    pub(crate) fn ask<S: Store, C: Clock>(
        &self,
        shared: &Shared<S, C>,
        charges: &[Charge<'_>],
    ) -> (RefusalFuture<S>, Option<Decision>) {
        self.count(shared, |stats| stats.by_store += 1);
        let charges = self.asked_charges(charges);
        if self.is_unplanned() {
            // A cache around this store remembers the refusals of limits that are not leased.
            return (Box::pin(shared.store.store().check(&charges)), None);
        }
        shared.store.send(&charges)
    }

    fn asked_charges<'c>(&'c self, charges: &[Charge<'c>]) -> SmallVec<[Charge<'c>; 3]> {
        let mut asked = SmallVec::new();
        for (part, charge) in self.parts.iter().zip(charges) {
            match part {
                Part::Asked(Asked {
                    plan: Some(plan), ..
                }) => asked.push(charge.with_quota(&plan.stored)),
                Part::Asked(_) => asked.push(*charge),
                _ => {}
            }
        }
        asked
    }

    fn count<S, C>(&self, shared: &Shared<S, C>, count: impl FnOnce(&mut LeaseStats)) {
        let digest = self.parts.iter().find_map(|part| match part {
            Part::Asked(asked) => Some(asked.digest),
            _ => None,
        });
        count(&mut shared.pools.shard(digest.unwrap_or_default()).stats);
    }

    /// Returns the decision of a request with an answer about the asked charges.
    ///
    /// The refusal cache gives an answer without times.
    pub(crate) fn complete<S: Store, C: Clock>(
        &self,
        shared: &Shared<S, C>,
        answer: &Decision,
        times: Option<AnswerTimes>,
    ) -> Decision {
        let is_admitted = answer.is_allowed();
        if !is_admitted {
            self.put_back(shared);
        }
        let mut answers = answer.statuses().iter();
        let statuses = self.parts.iter().filter_map(|part| match part {
            Part::Leased(taken, status) if !is_admitted => Some(taken.untaken(status)),
            Part::Leased(_, status) | Part::Refused(status, _) => Some(*status),
            Part::Asked(asked) => {
                let status = answers.next()?;
                Some(asked.status(shared, status, self.now, times))
            }
        });
        let at = self.charged_at().min(answer.at());
        let decision = Decision::from_statuses(Operation::Check, at, statuses);
        if self.is_unplanned() {
            return decision.with_entries(answer.entries().iter().cloned());
        }
        decision
    }

    /// Forgets the last answers after a failed call.
    pub(crate) fn forget_answers<S: Store, C: Clock>(&self, shared: &Shared<S, C>) {
        for part in &self.parts {
            if let Part::Asked(asked) = part
                && let Some(plan) = &asked.plan
                && let Some(pool) =
                    shared
                        .pools
                        .shard(asked.digest)
                        .pool(asked.digest, asked.limit, &plan.asked)
            {
                pool.forget_answer();
            }
        }
    }

    /// Puts the units of a request back into their leases.
    pub(crate) fn put_back<S: Store, C: Clock>(&self, shared: &Shared<S, C>) {
        let now = shared.now();
        for part in &self.parts {
            let Part::Leased(taken, status) = part else {
                continue;
            };
            let Taken {
                digest,
                units,
                charged_at,
            } = *taken;
            let shard = &mut *shared.pools.shard(digest);
            match shard.put_back(digest, status.name, units, charged_at, now) {
                Some(pool) => pool.forget(units),
                // The lease has ended while the store was asked about another limit.
                None => shard.stats.units_lost += units,
            }
        }
    }

    /// Returns the instant of the first lease's charge, or of a pool's refusal.
    ///
    /// A refund with this instant gives back no more units than were charged.
    fn charged_at(&self) -> Timestamp {
        let instants = self.parts.iter().filter_map(|part| match part {
            Part::Leased(taken, _) => Some(taken.charged_at),
            Part::Refused(_, at) => Some(*at),
            Part::Asked(_) => None,
        });
        instants.min().unwrap_or(Timestamp::from_micros(u64::MAX))
    }
}

impl Taken {
    /// Returns the status after the units were put back.
    fn untaken(&self, status: &LimitStatus) -> LimitStatus {
        let remaining = (status.remaining() + self.units).min(status.limit);
        LimitStatus {
            left: Left::new(remaining, status.reset_after()),
            taken: 0,
            ..*status
        }
    }
}

impl Asked {
    /// Returns the status without an answer of the store. No units remain for certain.
    fn unknown(&self) -> LimitStatus {
        LimitStatus {
            name: self.limit,
            limit: self.capacity,
            left: Left::new(0, self.window),
            taken: 0,
            outcome: Outcome::Allow,
            is_shadow: self.is_shadow,
        }
    }

    /// Returns the status in an answer of the store. The pool learns from the answer.
    fn status<S: Store, C: Clock>(
        &self,
        shared: &Shared<S, C>,
        status: &LimitStatus,
        now: u64,
        times: Option<AnswerTimes>,
    ) -> LimitStatus {
        let Some(plan) = &self.plan else {
            return *status;
        };
        let mut status = LimitStatus {
            limit: self.capacity,
            left: Left::new(status.remaining(), status.reset_after()),
            ..*status
        };
        let shard = &mut *shared.pools.shard(self.digest);
        if let Some(pool) = shard.pool(self.digest, self.limit, &plan.asked) {
            if let Some(times) = times {
                pool.observe(&status, times);
            }
            if let Outcome::Refuse(wait) = status.outcome {
                let now = times.map_or(now, |times| times.received);
                let wait = pool.retry_time(now, wait, times.is_none());
                status.outcome = Outcome::Refuse(wait);
            }
        }
        status
    }
}

/// The leases that are due, by key.
#[derive(Default)]
struct DueLeases(Vec<LeaseCall>);

impl DueLeases {
    fn add(&mut self, want: Option<Want>, digest: u128, key: &Key<'_>) {
        let Some(want) = want else { return };
        match self.0.iter_mut().find(|call| call.digest == digest) {
            Some(call) => call.wants.push(want),
            None => self.0.push(LeaseCall {
                digest,
                key: key.to_static(),
                wants: SmallVec::from_iter([want]),
            }),
        }
    }

    fn spawn<S: Store, C: Clock>(self, shared: &Arc<Shared<S, C>>) -> Answered {
        self.0.into_iter().map(|call| call.spawn(shared)).collect()
    }
}
