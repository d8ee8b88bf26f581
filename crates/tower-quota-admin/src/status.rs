use core::time::Duration;

use serde::Serialize;
use tower_quota::{LimitStatus, Outcome};
use tower_quota_live::Listing;
use utoipa::ToSchema;

/// The remaining units of a client, and the reset time.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Status {
    /// The name of the limit.
    limit: String,
    /// The most units admitted at once.
    capacity: u64,
    /// The remaining units.
    remaining: u64,
    /// The time until the counter is full, in milliseconds, rounded up.
    full_after_ms: u64,
    /// The outcome of a request of a unit now.
    outcome: Outcomes,
    /// The retry time of a request of a unit, in milliseconds, rounded up.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
    /// True if the limit is evaluated without enforcing it.
    shadow: bool,
}

/// The outcome of a request.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = StatusOutcome)]
enum Outcomes {
    Allowed,
    Queued,
    Limited,
    Never,
    /// A block refuses the request before any limit.
    Blocked,
}

impl From<LimitStatus> for Status {
    fn from(status: LimitStatus) -> Self {
        let (outcome, retry_after_ms) = match status.outcome {
            Outcome::Allow => (Outcomes::Allowed, None),
            Outcome::Wait(wait) => (Outcomes::Queued, Some(millis(wait))),
            Outcome::Refuse(wait) => (Outcomes::Limited, Some(millis(wait))),
            // The rest is `Never`, and outcomes that this version does not know.
            _ => (Outcomes::Never, None),
        };
        Self {
            limit: status.name.to_string(),
            capacity: status.limit,
            remaining: status.remaining(),
            full_after_ms: millis(status.reset_after()),
            outcome,
            retry_after_ms,
            shadow: status.is_shadow,
        }
    }
}

impl Status {
    /// Sets the outcome of a client that a block or an allowance decides about.
    pub(crate) fn decide_by(&mut self, listing: &Listing) {
        self.outcome = match listing.kind.as_str() {
            "allow" => Outcomes::Allowed,
            _ => Outcomes::Blocked,
        };
        self.retry_after_ms = None;
    }
}

pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}
