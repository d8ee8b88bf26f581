//! Events of decisions.

use core::fmt;

use tower_quota_core::Name;
use tracing::{debug, info};

use crate::decided::Decided;

/// Writes the event of a decision: of every refusal, and of one of so many admissions, none if it is zero.
#[inline]
pub(crate) fn trace(decided: &Decided<'_>, one_of: u32) {
    if decided.reason().is_some() || decided.is_degraded() {
        trace_refusal(decided);
    } else if u32::MAX
        .checked_div(one_of)
        .is_some_and(|most| fastrand::u32(..) <= most)
    {
        trace_admission(decided);
    }
}

#[cold]
fn trace_refusal(decided: &Decided<'_>) {
    info!(
        target: "tower_quota::decision",
        outcome = decided.label(),
        method = %decided.head().method(),
        limits = %Limits(decided),
        retry_after_ms = decided.retry_after().map(|retry| u64::try_from(retry.as_millis()).unwrap_or(u64::MAX)),
        degraded = decided.is_degraded(),
        "request decided"
    );
}

#[cold]
fn trace_admission(decided: &Decided<'_>) {
    debug!(
        target: "tower_quota::decision",
        outcome = decided.label(),
        method = %decided.head().method(),
        remaining = decided.decision().and_then(|decision| Some(decision.tightest()?.remaining())),
        "request decided"
    );
}

/// Shows the limits that refuse a request.
struct Limits<'a, 'd>(&'a Decided<'d>);

impl fmt::Display for Limits<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        self.0.refusing_limits().try_for_each(|limit: Name| {
            write!(f, "{separator}{limit}")?;
            separator = ", ";
            Ok(())
        })
    }
}
