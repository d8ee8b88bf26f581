use tower_quota_core::{Decision, Key, LimitStatus, Name};
use tracing::{debug, info};

use crate::observe::Decided;
use crate::observe::{Event, Observer};
use crate::request::Rules;

/// Writes an event for each refusal, and for 1 in this number of admissions.
pub(crate) struct Tracer(pub(crate) u32);

impl Observer for Tracer {
    fn observe(&self, event: &Event<'_>, rules: &Rules) {
        if let Event::Decided { decided, .. } = event {
            trace(decided, self.0, rules);
        }
    }

    fn sees_admissions(&self) -> bool {
        true
    }

    fn reads_refused_keys(&self) -> bool {
        true
    }
}

fn trace(decided: &Decided<'_>, one_of: u32, rules: &Rules) {
    let head = decided.head;
    let status = decided.decision.and_then(Decision::tightest);
    if decided.reason.is_none() && !decided.is_degraded {
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
    let client = decided.client().filter(|key| **key != Key::EVERYONE);
    let limit = status.and_then(|status| rules.plan.limit(status.name));
    let limits: Vec<_> = decided.refusing_limits().map(Name::as_str).collect();
    info!(
        target: "tower_quota::decision",
        outcome = decided.label(),
        method = %head.method(),
        route = head.matched_route(),
        limits = limits.join(", "),
        client = client.map(|key| display(rules.settings.key_seed.hash(key))),
        scope = client.map(|key| key.scope().as_str()),
        algorithm = limit.map(|limit| display(limit.quota.algorithm())),
        capacity = status.map(|status| status.limit),
        remaining = status.map(LimitStatus::remaining),
        retry_after_ms = decided.retry_after().map(|retry| u64::try_from(retry.as_millis()).unwrap_or(u64::MAX)),
        version = decided.version,
        trace_id = decided.trace_id(),
        request_id = decided.request_id(),
        degraded = decided.is_degraded,
        "request decided"
    );
}
