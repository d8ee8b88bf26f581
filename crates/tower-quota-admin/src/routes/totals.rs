use core::cmp::Reverse;
use std::collections::HashMap;

use serde::Serialize;
use tower_quota::metrics::{DecisionTotals, StoreLatency};
use tower_quota_rules::QuotaText;

use crate::api::Api;
use crate::recent::{Counts, rank};

const LISTED: usize = 50;

#[derive(Serialize)]
pub(crate) struct LimitTotals {
    pub(super) limit: &'static str,
    quota: QuotaText,
    scope: &'static str,
    allowed: u64,
    queued: u64,
    limited: u64,
    shadowed: u64,
    would_allow: u64,
    degraded: u64,
}

#[derive(Serialize)]
pub(crate) struct Latency {
    calls: u64,
    p50_us: u64,
    p99_us: u64,
}

impl Latency {
    pub(crate) fn of(calls: &StoreLatency) -> Option<Self> {
        let micros = |percent| u64::try_from(calls.percentile(percent)?.as_micros()).ok();
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
