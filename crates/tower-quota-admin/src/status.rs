use core::time::Duration;

use serde::Serialize;
use tower_quota::{LimitStatus, Outcome, Over};
use tower_quota_live::Listing;
use tower_quota_rules::OverText;

use crate::api::Api;

#[derive(Serialize)]
pub(crate) struct Status {
    limit: String,
    capacity: u64,
    remaining: u64,
    full_after_ms: u64,
    /// `allowed`, `queued`, `limited`, `never` or `blocked`.
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
    shadow: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    over: Option<OverText>,
}

impl Status {
    pub(crate) fn of(api: &Api, status: LimitStatus) -> Self {
        let (outcome, retry_after_ms) = match status.outcome {
            Outcome::Allow => ("allowed", None),
            Outcome::Wait(wait) => ("queued", Some(millis(wait))),
            Outcome::Refuse(wait) => ("limited", Some(millis(wait))),
            // The rest is `Never`, and outcomes that this version does not know.
            _ => ("never", None),
        };
        let over = api.live.handle().over(status.name.as_str()).ok();
        Self {
            limit: status.name.to_string(),
            capacity: status.limit,
            remaining: status.remaining(),
            full_after_ms: millis(status.reset_after()),
            outcome,
            retry_after_ms,
            shadow: status.is_shadow,
            over: over
                .filter(|over| *over != Over::Refuse)
                .map(OverText::from),
        }
    }

    /// Sets the outcome of a client that a block or an allowance decides about.
    pub(crate) fn decide_by(&mut self, listing: &Listing) {
        self.outcome = match listing.kind.as_str() {
            "allow" => "allowed",
            _ => "blocked",
        };
        self.retry_after_ms = None;
    }
}

pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}
