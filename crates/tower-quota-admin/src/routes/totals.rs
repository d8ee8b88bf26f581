//! The decisions of each limit, as a snapshot shows them.

use core::cmp::Reverse;

use serde::Serialize;
use tower_quota::metrics::{DecisionTotals, StoreLatency};
use utoipa::ToSchema;

use crate::api::Api;

/// The limits of a snapshot.
const LISTED: usize = 50;

/// The decisions of a limit by outcome.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LimitTotals {
    limit: &'static str,
    /// Requests that the limit admitted at once.
    allowed: u64,
    /// Requests that it admitted after a wait.
    queued: u64,
    /// Requests that it refused, those that cost more than it ever admits included.
    limited: u64,
    /// Requests that it would have refused, if it were enforced.
    shadowed: u64,
    /// Requests that passed uncounted while the store was unavailable.
    degraded: u64,
}

/// The durations of a store's calls.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = StoreLatency)]
pub(crate) struct Latency {
    calls: u64,
    /// The duration that half of the calls did not exceed, in microseconds.
    p50_us: u64,
    /// The duration that 99 % of the calls did not exceed, in microseconds.
    p99_us: u64,
}

impl Latency {
    /// Returns the durations of these calls, if there are any.
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

/// Returns the limits with most decisions, those with most first, and the number of others.
pub(crate) fn busiest(api: &Api) -> (Vec<LimitTotals>, usize) {
    let mut totals = api.live.handle().decision_totals();
    totals.sort_by_key(|limit| Reverse(limit.sum()));
    let more = totals.len().saturating_sub(LISTED);
    totals.truncate(LISTED);
    (totals.into_iter().map(LimitTotals::from).collect(), more)
}

impl From<DecisionTotals> for LimitTotals {
    fn from(totals: DecisionTotals) -> Self {
        Self {
            limit: totals.limit.as_str(),
            allowed: totals.allowed,
            queued: totals.queued,
            limited: totals.limited + totals.never,
            shadowed: totals.shadowed,
            degraded: totals.degraded,
        }
    }
}
