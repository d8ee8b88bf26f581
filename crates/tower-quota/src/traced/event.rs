//! Events of decisions.

use core::fmt;

use tower_quota_core::{Decision, Key, LimitStatus};
use tracing::{debug, info};

use super::span::SpanSettings;
use crate::decided::Decided;
use crate::policy::Plan;

/// Writes the event of every refusal, and of one of so many admissions.
pub(crate) fn trace(decided: &Decided<'_>, one_of: u32, plan: &Plan, spans: &SpanSettings) {
    let head = decided.head();
    let status = decided.decision().and_then(Decision::tightest);
    if decided.reason().is_none() && !decided.is_degraded() {
        let is_drawn = u32::MAX
            .checked_div(one_of)
            .is_some_and(|most| fastrand::u32(..) <= most);
        if is_drawn {
            debug!(
                target: "tower_quota::decision",
                outcome = decided.label(),
                method = %head.method(),
                remaining = status.map(LimitStatus::remaining),
                "request decided"
            );
        }
        return;
    }
    let client = status
        .and_then(|status| decided.keys().find(|(limit, _)| *limit == status.name))
        .filter(|(_, key)| **key != Key::EVERYONE)
        .and_then(|(_, key)| spans.hash(key));
    let limit = status.and_then(|status| plan.limit(status.name));
    info!(
        target: "tower_quota::decision",
        outcome = decided.label(),
        method = %head.method(),
        route = head.matched_route(),
        limits = %Limits(decided),
        client = client.map(display),
        algorithm = limit.map(|limit| display(limit.quota.algorithm())),
        capacity = status.map(|status| status.limit),
        remaining = status.map(LimitStatus::remaining),
        retry_after_ms = decided.retry_after().map(|retry| u64::try_from(retry.as_millis()).unwrap_or(u64::MAX)),
        degraded = decided.is_degraded(),
        "request decided"
    );
}

/// Shows the limits that refuse a request.
struct Limits<'a, 'd>(&'a Decided<'d>);

impl fmt::Display for Limits<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, limit) in self.0.refusing_limits().enumerate() {
            let separator = if at == 0 { "" } else { ", " };
            write!(f, "{separator}{limit}")?;
        }
        Ok(())
    }
}
