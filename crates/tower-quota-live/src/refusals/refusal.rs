use core::time::Duration;

use serde::Serialize;

use crate::time::Time;

/// A refused request, or several of a client that repeats refused requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Refusal {
    /// The time of the refusal, or of the last one of several.
    pub at: Time,
    /// The number of refusals. If a client has more than four a second at a limit and a route, further refusals raise the
    /// count of the fourth, and leave their time, wait and ids.
    pub count: u64,
    /// The outcome in a word, as in the metrics, such as `limited` or `blocked`.
    pub outcome: &'static str,
    /// The refusing limit with the longest wait, if limits refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<&'static str>,
    /// The scope of the client's key, such as `header x-api-key`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<&'static str>,
    /// The hash of the client's key, as in lists, blocks and audit records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// The key, if it is text of at most 128 bytes and may be shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The route matched by axum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
    /// The wait that the answer gave, without jitter, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// The version of the rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// The request's `x-request-id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The trace id of the request's `traceparent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
}

/// The remembered refusals of an instance.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct RefusalList {
    /// The refusals, the newest first.
    pub refusals: Vec<Refusal>,
    /// The time since when this instance remembers all refusals.
    pub since: Time,
}

/// Selects refusals. The default selects all refusals.
#[derive(Clone, Debug, Default)]
pub struct RefusalFilter {
    /// The [hashes](crate::LiveRules::key_hash) of the clients. `None` selects all clients.
    pub hashes: Option<Vec<String>>,
    /// The scope of the key.
    pub scope: Option<String>,
    /// The refusing limit.
    pub limit: Option<String>,
    /// The earliest time.
    pub after: Option<Time>,
    /// The latest time.
    pub before: Option<Time>,
    /// The request id, the trace id or the whole `traceparent`.
    pub request: Option<String>,
}

impl RefusalFilter {
    /// Returns the hashes of the clients as numbers.
    pub(super) fn numbers(&self) -> Option<Vec<u64>> {
        let hashes = self.hashes.as_ref()?.iter();
        Some(
            hashes
                .filter_map(|hash| u64::from_str_radix(hash, 16).ok())
                .collect(),
        )
    }

    pub(super) fn has_time(&self, at: Time) -> bool {
        self.after.is_none_or(|after| at >= after) && self.before.is_none_or(|before| at <= before)
    }

    pub(super) fn is_of_request(&self, request_id: &str, trace_id: &str) -> bool {
        self.request.as_deref().is_none_or(|id| {
            let is_trace = !trace_id.is_empty() && id.split('-').any(|part| part == trace_id);
            id == request_id || is_trace
        })
    }
}

pub(super) fn millis(wait: Duration) -> u64 {
    u64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}
