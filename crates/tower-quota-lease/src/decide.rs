//! Checks: from leases where they hold enough, otherwise by the store.

use core::time::Duration;
use std::sync::Arc;

use smallvec::SmallVec;
use tower_quota_core::{
    Charge, ChargeMode, Clock, Decision, Key, Left, LimitStatus, Name, Operation, Outcome, Store,
    Timestamp,
};

use crate::plan::{Plan, is_leasable};
use crate::refusal::AnswerTimes;
use crate::remembered::KnownRefusal;
use crate::renewal::Renewal;
use crate::shared::Shared;
use crate::want::{Want, has_runtime};

/// A request that is being decided.
pub(crate) struct Request {
    /// One for each charge. More than one would be moved with every request.
    parts: SmallVec<[Part; 1]>,
    /// The instant by this instance, before anything was asked.
    now: u64,
    /// Says whether it may be decided from leases. Otherwise it is an exact round trip.
    is_leasable: bool,
}

/// One charge of a request.
enum Part {
    /// Its units were taken from a lease.
    Leased(Taken, LimitStatus),
    /// A short or refused lease refuses it.
    Refused(LimitStatus, Timestamp),
    /// The store has to decide.
    Asked(Asked),
}

/// Units that a request has taken from a lease.
struct Taken {
    digest: u128,
    limit: Name,
    units: u64,
    charged_at: Timestamp,
    /// Says that it counts the request as decided from leases.
    is_first: bool,
}

/// A charge that the store decides.
struct Asked {
    digest: u128,
    limit: Name,
    units: u64,
    capacity: u64,
    window: Duration,
    is_shadow: bool,
    /// The plan of its quota, if its requests may be leased.
    plan: Option<Arc<Plan>>,
}

impl Request {
    /// Makes a request of these charges, to be [filled](Self::take) in place because it is large.
    #[inline]
    pub(crate) fn new<S: Store, C: Clock>(shared: &Shared<S, C>, charges: &[Charge<'_>]) -> Self {
        // A refund is of one instant, and leased units were charged before those of the limits that the store decides.
        // A forced charge has to reach the store even if a lease would refuse the request.
        let needs_store =
            |charge: &Charge<'_>| charge.is_refundable() || charge.mode() == ChargeMode::Forced;
        let is_leasable = !shared.is_closed() && !charges.iter().any(needs_store);
        Self {
            parts: SmallVec::with_capacity(charges.len()),
            now: shared.now(),
            is_leasable,
        }
    }

    /// Takes the charges of a request from leases, as far as these hold enough.
    pub(crate) fn take<S: Store, C: Clock>(
        &mut self,
        shared: &Arc<Shared<S, C>>,
        charges: &[Charge<'_>],
    ) {
        let mut renewals = Renewals::default();
        for charge in charges {
            let part = self.part(shared, charge, &mut renewals);
            self.parts.push(part);
        }
        renewals.spawn(shared);
    }

    /// Takes one charge. The first one counts the request as decided from leases, until it is put back.
    fn part<S: Store, C: Clock>(
        &self,
        shared: &Shared<S, C>,
        charge: &Charge<'_>,
        renewals: &mut Renewals,
    ) -> Part {
        let (units, limit) = (charge.units(), charge.name());
        let digest = shared.leases.digest(charge.key());
        if self.is_leasable
            && is_leasable(charge)
            && let Some(part) = self.part_of_pool(shared, charge, digest, renewals)
        {
            return part;
        }
        let quota = charge.quota();
        let (capacity, window, is_shadow) = (quota.capacity(), quota.window(), charge.is_shadow());
        Part::Asked(Asked {
            digest,
            limit,
            units,
            capacity,
            window,
            is_shadow,
            plan: None,
        })
    }

    /// Takes one charge from the pool of its limit, or lets that refuse it. Otherwise the store has to be asked.
    fn part_of_pool<S: Store, C: Clock>(
        &self,
        shared: &Shared<S, C>,
        charge: &Charge<'_>,
        digest: u128,
        renewals: &mut Renewals,
    ) -> Option<Part> {
        let (units, limit, now) = (charge.units(), charge.name(), self.now);
        let is_refused = self.outcome() == Some(false);
        let refused_before = match shared.leases.refuse_known(digest, charge, now, is_refused) {
            Ok((status, at)) => return Some(Part::Refused(status, at)),
            Err(uncounted) => uncounted,
        };
        let mut shard = shared.leases.shard_to_take(digest);
        let pool = shard.pool(digest, limit, charge.quota())?;
        pool.note_refused(now, &refused_before);
        if let Some(charged_at) = pool.grants.take(now, units) {
            pool.note(now, units);
            renewals.want(pool.next_lease(now), digest, charge.key());
            let status = pool.status(now, units);
            let is_first = self.parts.is_empty();
            shard.counts.by_lease += u64::from(is_first);
            return Some(Part::Leased(
                Taken {
                    digest,
                    limit,
                    units,
                    charged_at,
                    is_first,
                },
                status,
            ));
        }
        if let Some(want) = pool.next_short_lease(now, units) {
            renewals.want(Some(want), digest, charge.key());
        }
        let (refusal, serial) = (pool.refuses(now, units)?, pool.serial);
        pool.note_refusal(now, units);
        shard.counts.refused_here += u64::from(!is_refused);
        // Of the pool as it is: another thread may change it as soon as the shard is released.
        let version = shared.leases.version(digest);
        drop(shard);
        shared.leases.remember(
            KnownRefusal::new((digest, serial, version), charge, refusal),
            now,
        );
        Some(Part::Refused(
            refusal.status(now, units),
            refusal.seen.store_now(now),
        ))
    }

    /// Returns whether leases admit the request or refuse it; `None` if the store has to be asked.
    ///
    /// It is also asked about a request without charges: the instant of the answer is the store's.
    pub(crate) fn outcome(&self) -> Option<bool> {
        if self
            .parts
            .iter()
            .any(|part| matches!(part, Part::Refused(..)))
        {
            return Some(false);
        }
        let are_leased = self
            .parts
            .iter()
            .all(|part| matches!(part, Part::Leased(..)));
        (are_leased && !self.parts.is_empty()).then_some(true)
    }

    /// Returns the decision that is made without the store.
    pub(crate) fn conclude<S: Store, C: Clock>(
        &self,
        shared: &Shared<S, C>,
        is_admitted: bool,
    ) -> Decision {
        if !is_admitted {
            self.put_back(shared);
        }
        let statuses = self.parts.iter().map(|part| match part {
            Part::Leased(taken, status) => taken.status(status, is_admitted),
            Part::Refused(status, _) => *status,
            Part::Asked(asked) => asked.unknown(),
        });
        Decision::from_statuses(Operation::Check, self.charged_at(), statuses)
    }

    /// Returns the charges that the store is asked for, as it counts them.
    ///
    /// Records their demand, and asks for leases that are due.
    pub(crate) fn begin_call<'c, S: Store, C: Clock>(
        &'c mut self,
        shared: &Arc<Shared<S, C>>,
        charges: &'c [Charge<'c>],
    ) -> SmallVec<[Charge<'c>; 3]> {
        let mut renewals = Renewals::default();
        let can_lease = self.is_leasable && has_runtime();
        let mut by_store = 1;
        for (part, charge) in self.parts.iter_mut().zip(charges) {
            let Part::Asked(asked) = part else { continue };
            asked.plan = shared.plans.of(charge);
            let mut shard = shared.leases.shard_to_take(asked.digest);
            shard.counts.by_store += core::mem::take(&mut by_store);
            let Some(plan) = asked
                .plan
                .as_ref()
                .filter(|_| can_lease && is_leasable(charge))
            else {
                continue;
            };
            let Some(pool) =
                shared
                    .leases
                    .open(&mut shard, asked.digest, asked.limit, plan, self.now)
            else {
                continue;
            };
            pool.note(self.now, asked.units);
            pool.begin_exact(self.now, asked.units);
            renewals.want(pool.next_lease(self.now), asked.digest, charge.key());
        }
        if let Some(Part::Leased(taken, _)) = self.parts.first_mut() {
            let is_first = core::mem::take(&mut taken.is_first);
            shared.leases.shard_to_take(taken.digest).counts.by_lease -= u64::from(is_first);
        }
        renewals.spawn(shared);
        let asked = self
            .parts
            .iter()
            .zip(charges)
            .filter_map(|(part, charge)| match part {
                Part::Asked(Asked {
                    plan: Some(plan), ..
                }) => Some(charge.with_quota(&plan.stored)),
                Part::Asked(_) => Some(*charge),
                _ => None,
            });
        asked.collect()
    }

    /// Returns the decision, with the store's answer about the charges that it was asked for.
    pub(crate) fn complete<S: Store, C: Clock>(
        &self,
        shared: &Shared<S, C>,
        answer: &Decision,
    ) -> Decision {
        let is_admitted = answer.is_allowed();
        if !is_admitted {
            self.put_back(shared);
        }
        let asked = self
            .parts
            .iter()
            .filter(|part| matches!(part, Part::Asked(_)))
            .count();
        if answer.statuses().len() != asked {
            // A wrapper answers for the store, and knows some of the limits.
            return Decision::from_statuses(
                Operation::Check,
                answer.at(),
                answer.statuses().iter().copied(),
            );
        }
        let times = AnswerTimes {
            sent: self.now,
            received: shared.now(),
            at: answer.at(),
        };
        let mut answers = answer.statuses().iter();
        let statuses = self.parts.iter().filter_map(|part| match part {
            Part::Leased(taken, status) => Some(taken.status(status, is_admitted)),
            Part::Refused(status, _) => Some(*status),
            Part::Asked(asked) => answers.next().map(|status| {
                asked.observe(shared, status, times);
                // A plan's stored quota may be smaller than the limit's: of the limit only these two numbers hold.
                let left = match &asked.plan {
                    Some(_) => Left::new(status.remaining(), status.reset_after()),
                    None => status.left,
                };
                LimitStatus {
                    limit: asked.capacity,
                    left,
                    ..*status
                }
            }),
        });
        let at = self.charged_at().min(answer.at());
        let decision = Decision::from_statuses(Operation::Check, at, statuses);
        // Pools remember the refusals of leased limits. A cache around this store remembers the others.
        let is_unleased = |part: &Part| matches!(part, Part::Asked(Asked { plan: None, .. }));
        if self.parts.iter().all(is_unleased) {
            decision.with_entries(answer.entries().iter().cloned())
        } else {
            decision
        }
    }

    /// Ends a request that the store has not answered.
    pub(crate) fn abandon<S: Store, C: Clock>(&self, shared: &Shared<S, C>) {
        self.put_back(shared);
        for part in &self.parts {
            let Part::Asked(Asked {
                digest,
                limit,
                plan: Some(plan),
                ..
            }) = part
            else {
                continue;
            };
            if let Some(pool) = shared
                .leases
                .shard(*digest)
                .pool(*digest, *limit, &plan.asked)
            {
                pool.forget_answer();
            }
        }
    }

    /// Puts the units back that were taken from leases.
    pub(crate) fn put_back<S: Store, C: Clock>(&self, shared: &Shared<S, C>) {
        for part in &self.parts {
            let Part::Leased(taken, _) = part else {
                continue;
            };
            let now = shared.now();
            let shard = &mut *shared.leases.shard_to_take(taken.digest);
            shard.counts.by_lease -= u64::from(taken.is_first);
            match shard.put_back(
                (taken.digest, taken.limit),
                taken.units,
                taken.charged_at,
                now,
            ) {
                Some(pool) => {
                    pool.forget(taken.units);
                    if pool.has_refused(now) {
                        shared.leases.end_refusals(taken.digest);
                    }
                }
                // The lease has ended while the store was asked about another limit.
                None => shard.counts.units_lost += taken.units,
            }
        }
    }

    /// Returns the instant at which the first leased units were charged, or that of a refusal here.
    ///
    /// A refund that gives this instant returns no more than was charged.
    fn charged_at(&self) -> Timestamp {
        let leased = self.parts.iter().filter_map(|part| match part {
            Part::Leased(taken, _) => Some(taken.charged_at),
            Part::Refused(_, at) => Some(*at),
            Part::Asked(_) => None,
        });
        leased.min().unwrap_or(Timestamp::from_micros(u64::MAX))
    }
}

impl Taken {
    /// Returns the status of its limit, after the units were put back if the request is refused.
    fn status(&self, status: &LimitStatus, is_admitted: bool) -> LimitStatus {
        match is_admitted {
            true => *status,
            false => {
                let left = Left::new(
                    (status.remaining() + self.units).min(status.limit),
                    status.reset_after(),
                );
                LimitStatus {
                    left,
                    taken: 0,
                    ..*status
                }
            }
        }
    }
}

impl Asked {
    /// Returns the status of a limit of which nothing is known here: nothing remains for certain.
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

    fn observe<S: Store, C: Clock>(
        &self,
        shared: &Shared<S, C>,
        status: &LimitStatus,
        times: AnswerTimes,
    ) {
        let Some(plan) = &self.plan else { return };
        let shard = &mut *shared.leases.shard(self.digest);
        if let Some(pool) = shard.pool(self.digest, self.limit, &plan.asked) {
            shard.counts.units_under_admitted += pool.observe(status, self.units, times);
        }
    }
}

/// The leases that are due, by key.
#[derive(Default)]
struct Renewals(Vec<Renewal>);

impl Renewals {
    fn want(&mut self, want: Option<Want>, digest: u128, key: &Key<'_>) {
        let Some(want) = want else { return };
        match self.0.iter_mut().find(|renewal| renewal.digest == digest) {
            Some(renewal) => renewal.wants.push(want),
            None => {
                let key = key.to_static();
                self.0.push(Renewal {
                    digest,
                    key,
                    wants: SmallVec::from_iter([want]),
                });
            }
        }
    }

    fn spawn<S: Store, C: Clock>(self, shared: &Arc<Shared<S, C>>) {
        // Most requests need none, and pay for no iterator.
        if !self.0.is_empty() {
            self.0.into_iter().for_each(|renewal| renewal.spawn(shared));
        }
    }
}
