use core::cmp::Reverse;
use std::collections::HashMap;

use serde_json::{Value, json};
use tower_quota::metrics::{DecisionTotals, StoreLatency};
use tower_quota_rules::QuotaText;

use crate::api::Api;
use crate::recent::{Counts, rank};

const LISTED: usize = 50;

/// Returns the limits by refusals in the last minute, then by requests, and the number of further
/// limits.
pub(super) fn listed(
    api: &Api,
    last_minute: &HashMap<&'static str, Counts>,
) -> (Vec<DecisionTotals>, usize) {
    let mut totals = api.live.handle().decision_totals();
    totals.sort_by_cached_key(|limit| {
        let recent = last_minute.get(limit.limit.as_str()).copied();
        (rank(&recent.unwrap_or_default()), Reverse(limit.sum()))
    });
    let more = totals.len().saturating_sub(LISTED);
    totals.truncate(LISTED);
    (totals, more)
}

pub(super) fn of_limit(totals: &DecisionTotals) -> Value {
    json!({
        "limit": totals.limit.as_str(),
        "quota": QuotaText::from(totals.quota),
        "scope": totals.scope.as_str(),
        "allowed": totals.allowed,
        "queued": totals.queued,
        "limited": totals.limited + totals.never,
        "shadowed": totals.shadowed,
        "would_allow": totals.would_allow,
        "degraded": totals.degraded,
    })
}

pub(super) fn of_calls(calls: &StoreLatency) -> Option<Value> {
    let micros = |percent| u64::try_from(calls.percentile(percent)?.as_micros()).ok();
    Some(json!({ "calls": calls.calls(), "p50_us": micros(50)?, "p99_us": micros(99)? }))
}
