//! The status of a limit for a client, as the API shows it.

use core::time::Duration;

use serde::Serialize;
use tower_quota::{LimitStatus, Outcome};
use utoipa::ToSchema;

/// The units that a client has left of a limit, and until when.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Status {
    /// The name of the limit.
    limit: String,
    /// The most units that it admits at once.
    capacity: u64,
    /// The units left.
    remaining: u64,
    /// The time until nothing is used, in milliseconds, rounded up.
    full_after_ms: u64,
    /// The outcome of a request of one unit now.
    outcome: Outcomes,
    /// The time after which a request of one unit would be admitted, in milliseconds, rounded up.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
    /// True if the limit is evaluated and not enforced.
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
}

impl From<LimitStatus> for Status {
    fn from(status: LimitStatus) -> Self {
        let (outcome, retry_after_ms) = match status.outcome {
            Outcome::Allow => (Outcomes::Allowed, None),
            Outcome::Wait(wait) => (Outcomes::Queued, Some(millis(wait))),
            Outcome::Refuse(wait) => (Outcomes::Limited, Some(millis(wait))),
            // Never, and outcomes that this version does not know.
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

/// Returns a time in milliseconds, rounded up.
pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}
