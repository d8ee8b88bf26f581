use core::cmp::Reverse;
use std::collections::HashMap;

use serde::Serialize;
use tower_quota::metrics::{DecisionTotals, StoreLatency};
use tower_quota_rules::QuotaText;
use utoipa::ToSchema;

use crate::api::Api;
use crate::recent::{Counts, rank};

const LISTED: usize = 50;

/// The decisions of a limit by outcome.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LimitTotals {
    limit: &'static str,
    /// The quota of clients without their own quota.
    #[schema(value_type = String)]
    quota: QuotaText,
    /// The scope of the counted key, such as `header x-api-key`, or `everyone`.
    scope: &'static str,
    /// Requests admitted at once.
    allowed: u64,
    /// Requests admitted after a wait.
    queued: u64,
    /// Refused requests, even of a cost above the capacity.
    limited: u64,
    /// Requests a shadow limit would have refused.
    shadowed: u64,
    /// Requests admitted by this limit and refused by another limit.
    would_allow: u64,
    /// Requests admitted without counting during an outage of the store.
    degraded: u64,
}

/// The durations of a store's calls.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = StoreLatency)]
pub(crate) struct Latency {
    calls: u64,
    /// The median duration, in microseconds.
    p50_us: u64,
    /// The 99th percentile, in microseconds.
    p99_us: u64,
}

impl Latency {
    pub(crate) fn of(calls: &StoreLatency) -> Option<Self> {
        let micros = |percent| {
            calls
                .percentile(percent)
                .and_then(|time| u64::try_from(time.as_micros()).ok())
        };
        Some(Self {
            calls: calls.calls(),
            p50_us: micros(50)?,
            p99_us: micros(99)?,
        })
    }
}

/// Returns the limits by refusals in the last minute, then by requests, and the number of further
/// limits.
pub(crate) fn listed(
    api: &Api,
    last_minute: &HashMap<&'static str, Counts>,
) -> (Vec<LimitTotals>, usize) {
    let mut totals = api.live.handle().decision_totals();
    totals.sort_by_cached_key(|limit| {
        let recent = last_minute.get(limit.limit.as_str()).copied();
        (rank(&recent.unwrap_or_default()), Reverse(limit.sum()))
    });
    let more = totals.len().saturating_sub(LISTED);
    totals.truncate(LISTED);
    (totals.into_iter().map(LimitTotals::from).collect(), more)
}

impl LimitTotals {
    pub(crate) fn name(&self) -> &'static str {
        self.limit
    }
}

impl From<DecisionTotals> for LimitTotals {
    fn from(totals: DecisionTotals) -> Self {
        Self {
            limit: totals.limit.as_str(),
            quota: totals.quota.into(),
            scope: totals.scope.as_str(),
            allowed: totals.allowed,
            queued: totals.queued,
            limited: totals.limited + totals.never,
            shadowed: totals.shadowed,
            would_allow: totals.would_allow,
            degraded: totals.degraded,
        }
    }
}
