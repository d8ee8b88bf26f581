//! Builds the requests of a pair of aspects.

use std::time::Duration;

use tower_quota_core::{Algorithm, Charge, ChargeMode, Key, Penalty, Quota};

use super::Pairs;
use super::aspect::Aspect;
use super::step::Step;
use super::world::Fault;

const PENALTY: Penalty = Penalty::after(1)
    .step(Duration::from_secs(5))
    .most(Duration::from_secs(10));

/// The number of the common counter, after the two clients.
pub(super) const COMMON: usize = 2;

/// How two aspects meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Meeting {
    /// On one charge.
    OneCharge,
    /// On two limits of a key.
    TwoLimits,
    /// On a client's key, and on a key of all clients.
    TwoKeys,
    /// In two instances, on one counter.
    TwoInstances,
}

/// A request of a pair.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) aspects: Vec<Aspect>,
    pub(super) meeting: Meeting,
    pub(super) limits: Vec<Limit>,
}

#[derive(Clone, Debug)]
pub(super) struct Limit {
    name: &'static str,
    quota: Quota,
    raised: Quota,
    aspects: Vec<Aspect>,
    /// Whether both clients share the counter of this limit.
    pub(super) is_common: bool,
}

impl Meeting {
    /// All meetings.
    pub const ALL: [Self; 4] = [
        Self::OneCharge,
        Self::TwoLimits,
        Self::TwoKeys,
        Self::TwoInstances,
    ];
}

impl Shape {
    /// Returns all requests of a pair.
    pub(super) fn of_pair(pairs: &Pairs, one: Aspect, other: Aspect) -> Vec<Self> {
        let is_possible = match (one, other) {
            (Aspect::Reported, Aspect::Forced) | (Aspect::Forced, Aspect::Reported) => false,
            (one, other) => one == other || !one.has_own_quota() || !other.has_own_quota(),
        };
        let is_option = !one.is_step() && !other.is_step();
        let has_option = !one.is_step() || !other.is_step();
        let in_turn = one != other && ![one, other].into_iter().any(Aspect::has_own_quota);
        let meetings = [
            (Meeting::OneCharge, is_possible),
            (Meeting::TwoLimits, is_option),
            (Meeting::TwoKeys, has_option),
            (Meeting::TwoInstances, is_option && in_turn),
        ];
        let mut shapes = Vec::new();
        for (meeting, is_possible) in meetings {
            if is_possible && pairs.meetings.contains(&meeting) {
                shapes.push(Self::new(pairs, &[one], &[other], meeting));
            }
        }
        shapes
    }

    pub(super) fn new(pairs: &Pairs, one: &[Aspect], other: &[Aspect], meeting: Meeting) -> Self {
        let aspects = [one, other].concat();
        let limit = |name, aspects: &[Aspect], is_common| {
            let quota = pairs.quota_of(aspects);
            Limit {
                name,
                quota,
                raised: quota.try_raised(1).unwrap_or(quota),
                aspects: aspects.to_vec(),
                is_common,
            }
        };
        let limits = match meeting {
            Meeting::OneCharge | Meeting::TwoInstances => vec![limit("one", &aspects, false)],
            Meeting::TwoLimits | Meeting::TwoKeys => vec![
                limit("one", one, false),
                limit("two", other, meeting == Meeting::TwoKeys),
            ],
        };
        Self {
            aspects,
            meeting,
            limits,
        }
    }

    pub(super) fn has(&self, aspect: Aspect) -> bool {
        self.aspects.contains(&aspect)
    }

    /// Returns the charges of a request of this instance.
    pub(super) fn charges<'a>(
        &'a self,
        instance: usize,
        own: &'a Key<'a>,
        common: &'a Key<'a>,
        is_raised: bool,
    ) -> Vec<Charge<'a>> {
        let charge = |limit: &'a Limit| {
            let aspects = match self.meeting {
                Meeting::TwoInstances => &limit.aspects[instance..=instance],
                _ => &limit.aspects,
            };
            let is_raised = is_raised && limit.aspects.contains(&Aspect::ChangedQuota);
            let quota = if is_raised {
                &limit.raised
            } else {
                &limit.quota
            };
            let key = if limit.is_common { common } else { own };
            let charge = Charge::new(limit.name, quota, key);
            aspects.iter().fold(charge, |charge, aspect| match aspect {
                Aspect::Reported => charge.in_mode(ChargeMode::Reported),
                Aspect::Forced => charge.in_mode(ChargeMode::Forced),
                Aspect::Shadow => charge.shadow(),
                Aspect::AtMost => charge.at_most().cost(2),
                Aspect::Wait => charge.max_wait(quota.period() / 2),
                Aspect::Penalty => charge.penalty(&PENALTY),
                Aspect::CountedRefusals => charge.count_refusals(),
                // Windows and logs need no preparation for a refund.
                Aspect::Refunded if quota.algorithm().is_bucket() => charge.refundable(),
                _ => charge,
            })
        };
        self.limits.iter().map(charge).collect()
    }

    fn limit_of(&self, charge: &Charge<'_>) -> usize {
        let is_own = |limit: &Limit| charge.name().as_str() == limit.name;
        self.limits.iter().position(is_own).unwrap_or_default()
    }

    /// Returns the limit and the client that a charge of this client counts for.
    pub(super) fn counter_of(&self, charge: &Charge<'_>, client: usize) -> (usize, usize) {
        let limit = self.limit_of(charge);
        (
            limit,
            if self.limits[limit].is_common {
                COMMON
            } else {
                client
            },
        )
    }

    /// Returns the longest span after which a window or bucket is full again.
    pub(super) fn window(&self) -> Duration {
        let windows = self.limits.iter().map(|limit| limit.quota.period());
        windows.max().unwrap_or_default()
    }

    /// Returns the steps of the shape. The first step is the first of each run.
    pub(super) fn steps(&self, faults: &[Fault]) -> Vec<Step> {
        let mut steps = Vec::new();
        for instance in 0..2 {
            for client in 0..2 {
                steps.push(Step::Check { instance, client });
            }
        }
        let has_hold = self.has(Aspect::Hold);
        let others = [
            (Step::Settle, self.has(Aspect::Settled)),
            (Step::Refund, self.has(Aspect::Refunded) || has_hold),
            (Step::Release, has_hold && self.limits.len() > 1),
            (Step::Renew, has_hold),
            (Step::Reset, self.has(Aspect::Reset)),
            (Step::Peek, self.has(Aspect::Peeked)),
            (Step::Change, self.has(Aspect::ChangedQuota)),
            (Step::Pass, true),
            (Step::Expire, true),
        ];
        for (step, is_possible) in others {
            if is_possible {
                steps.push(step);
            }
        }
        let faults = faults.iter().copied();
        let faults = faults.filter(|fault| *fault != Fault::ForgetHolds || has_hold);
        steps.extend(faults.map(Step::Fault));
        steps
    }
}

impl Limit {
    pub(super) fn is_hold(&self) -> bool {
        self.aspects.contains(&Aspect::Hold)
    }

    /// Returns whether a peek sees only holds, and no strikes.
    pub(super) fn is_hold_without_strikes(&self) -> bool {
        self.is_hold() && !self.aspects.contains(&Aspect::Penalty)
    }

    /// Returns the largest quota of the limit, several times.
    pub(super) fn largest(&self, quotas: u64) -> Quota {
        let largest = match self.aspects.contains(&Aspect::ChangedQuota) {
            true => self.raised,
            false => self.quota,
        };
        let more = largest.capacity().saturating_mul(quotas - 1);
        largest.try_raised(more).unwrap_or(largest)
    }
}

impl Pairs {
    fn quota_of(&self, aspects: &[Aspect]) -> Quota {
        let quota = self.quota;
        if aspects.contains(&Aspect::Hold) {
            let hold = Quota::try_concurrent(quota.capacity());
            let hold = hold.and_then(|hold| hold.try_ttl(quota.period()));
            return hold.unwrap_or(quota);
        }
        if aspects.contains(&Aspect::Calendar) {
            return self.calendar.unwrap_or(quota);
        }
        if aspects.contains(&Aspect::Wait) {
            let queue = quota.try_algorithm(Algorithm::LeakyBucket);
            return queue.unwrap_or(quota);
        }
        quota
    }
}
