use tower_quota_core::{Name, Quota};

use super::latency::StoreLatency;
use super::policy::{MAX_LIMITS, PolicyMetrics};
use crate::observe::OutcomeLabel;
use crate::policy::Plan;

/// The decisions of a limit in this process since its policy came into force.
///
/// Call [`decision_totals`](crate::RateLimitHandle::decision_totals) to get the totals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DecisionTotals {
    /// The limit.
    pub limit: Name,
    /// The quota of the limit, without quotas by request or key.
    pub quota: Quota,
    /// The scope of the counted key, such as `header x-api-key`.
    pub scope: Name,
    /// Requests admitted at once.
    pub allowed: u64,
    /// Requests admitted after a wait.
    pub queued: u64,
    /// Requests refused.
    pub limited: u64,
    /// Requests above the capacity of the limit.
    pub never: u64,
    /// Requests that a shadow limit would refuse.
    pub shadowed: u64,
    /// Requests that this limit would admit, and another limit refused. They are not charged.
    pub would_allow: u64,
    /// Requests that passed uncounted during an outage of the store.
    pub degraded: u64,
}

impl DecisionTotals {
    /// Returns the number of all decisions.
    #[must_use]
    pub const fn sum(&self) -> u64 {
        self.allowed
            + self.queued
            + self.limited
            + self.never
            + self.shadowed
            + self.would_allow
            + self.degraded
    }
}

impl PolicyMetrics {
    pub(crate) fn store_latency(&self) -> StoreLatency {
        self.latency.read()
    }

    pub(crate) fn totals(&self, plan: &Plan) -> Vec<DecisionTotals> {
        let routes = self.routes();
        let limits = self.limits.iter().take(MAX_LIMITS).enumerate();
        let totals = limits.filter_map(|(position, name)| {
            let limit = plan.limit(*name)?;
            let of = |outcome: OutcomeLabel| {
                let counts = routes.iter().filter_map(|route| route.limits.get(position));
                counts.map(|counts| counts[outcome as usize].get()).sum()
            };
            Some(DecisionTotals {
                limit: *name,
                quota: limit.quota,
                scope: limit.extractor.scope(),
                allowed: of(OutcomeLabel::Allowed),
                queued: of(OutcomeLabel::Queued),
                limited: of(OutcomeLabel::Limited),
                never: of(OutcomeLabel::Never),
                shadowed: of(OutcomeLabel::Shadowed),
                would_allow: of(OutcomeLabel::WouldAllow),
                degraded: of(OutcomeLabel::Degraded),
            })
        });
        totals.collect()
    }
}
