//! Settings of the service.

use core::time::Duration;

/// How the service answers.
///
/// ```
/// use std::time::Duration;
/// use tower_quota_server::envoy::{EnvoyOptions, HeaderNames};
///
/// let mut options = EnvoyOptions::default();
/// assert_eq!(options.deadline, Duration::from_millis(15));
/// options.headers = Some(HeaderNames::default());
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EnvoyOptions {
    /// The longest time of a decision, 15 ms by default. Envoy waits for 20 ms by default.
    ///
    /// After the deadline, `on_store_failure` of each limit decides.
    pub deadline: Duration,
    /// Whether every call may pass. Limits still count, and statuses still show exceeded limits.
    pub is_shadow: bool,
    /// Whether all limits are in quota mode, so that a call is over only if all of its limits are exceeded.
    pub is_quota: bool,
    /// The part of a limit from which hits count as near the limit, in percent, 80 by default.
    pub near_limit_percent: u64,
    /// The fields that show the tightest limit of a call, by default none.
    pub headers: Option<HeaderNames>,
    /// Whether responses have the descriptors and metadata of a call as dynamic metadata.
    pub dynamic_metadata: bool,
    /// The body of the responses that the gateway makes of refused calls, by default none.
    pub refusal_body: Vec<u8>,
    /// The maximum number of bytes of a request, 256 KiB by default.
    pub largest_request: usize,
}

/// The names of the fields that show the tightest limit.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HeaderNames {
    /// The requests per unit, `RateLimit-Limit` by default.
    pub limit: String,
    /// The remaining requests, `RateLimit-Remaining` by default.
    pub remaining: String,
    /// The seconds until the limit is full or admits a request again, `RateLimit-Reset` by default.
    pub reset: String,
}

impl Default for EnvoyOptions {
    fn default() -> Self {
        Self {
            deadline: Duration::from_millis(15),
            is_shadow: false,
            is_quota: false,
            near_limit_percent: 80,
            headers: None,
            dynamic_metadata: false,
            refusal_body: Vec::new(),
            largest_request: 256 << 10,
        }
    }
}

impl Default for HeaderNames {
    fn default() -> Self {
        Self {
            limit: "RateLimit-Limit".into(),
            remaining: "RateLimit-Remaining".into(),
            reset: "RateLimit-Reset".into(),
        }
    }
}
