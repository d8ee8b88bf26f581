//! The decisions of each limit as totals, for pages that show them without a recorder.

use tower_quota_core::Name;

use super::MAX_LIMITS;
use super::latency::StoreLatency;
use super::outcome::LimitOutcome;
use super::policy::PolicyMetrics;
use super::threads::{OwnCounter, ThreadCounts};

/// The decisions of one limit by outcome, in this process, since its policy came into force.
///
/// It is returned by [`RateLimitHandle::decision_totals`](crate::RateLimitHandle::decision_totals).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DecisionTotals {
    /// The limit.
    pub limit: Name,
    /// Requests that it admitted at once.
    pub allowed: u64,
    /// Requests that it admitted after a wait.
    pub queued: u64,
    /// Requests that it refused.
    pub limited: u64,
    /// Requests that it refuses at any time: they cost more than it ever admits.
    pub never: u64,
    /// Requests that it would have refused, if it were enforced.
    pub shadowed: u64,
    /// Requests that passed uncounted while the store was unavailable.
    pub degraded: u64,
}

impl DecisionTotals {
    /// Returns the number of all decisions.
    #[must_use]
    pub const fn sum(&self) -> u64 {
        self.allowed + self.queued + self.limited + self.never + self.shadowed + self.degraded
    }

    /// Adds the totals of other limits to those of the same name, and appends the rest.
    pub(crate) fn plus(mut sums: Vec<Self>, others: Vec<Self>) -> Vec<Self> {
        for other in others {
            match sums.iter_mut().find(|sum| sum.limit == other.limit) {
                Some(sum) => sum.add(&other),
                None => sums.push(other),
            }
        }
        sums
    }

    const fn add(&mut self, other: &Self) {
        self.allowed += other.allowed;
        self.queued += other.queued;
        self.limited += other.limited;
        self.never += other.never;
        self.shadowed += other.shadowed;
        self.degraded += other.degraded;
    }

    fn new(limit: Name, sums: [u64; LimitOutcome::LABELS.len()]) -> Self {
        let of = |outcome: LimitOutcome| sums[outcome as usize];
        Self {
            limit,
            allowed: of(LimitOutcome::Allowed),
            queued: of(LimitOutcome::Queued),
            limited: of(LimitOutcome::Limited),
            never: of(LimitOutcome::Never),
            shadowed: of(LimitOutcome::Shadowed),
            degraded: of(LimitOutcome::Degraded),
        }
    }
}

impl PolicyMetrics {
    /// Returns the durations of the store's calls.
    pub(crate) fn store_latency(&self) -> StoreLatency {
        self.latency.read()
    }

    /// Returns the totals of the limits that are counted one by one, in the order of the policy.
    pub(crate) fn totals(&self) -> Vec<DecisionTotals> {
        let limits = self.limits.iter().take(MAX_LIMITS);
        let mut sums = vec![[0; LimitOutcome::LABELS.len()]; limits.len()];
        let all_allowed: u64 = self
            .threads
            .iter()
            .flat_map(|counts| &counts.all_allowed)
            .map(OwnCounter::get)
            .sum();
        for row in self.threads.iter().flat_map(ThreadCounts::rows) {
            for (sums, counters) in sums.iter_mut().zip(&row.limits) {
                sums.iter_mut()
                    .zip(counters)
                    .for_each(|(sum, counter)| *sum += counter.get());
            }
        }
        sums.iter_mut()
            .for_each(|sums| sums[LimitOutcome::Allowed as usize] += all_allowed);
        limits
            .zip(sums)
            .map(|(limit, sums)| DecisionTotals::new(*limit, sums))
            .collect()
    }
}
