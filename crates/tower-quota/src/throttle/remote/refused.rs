use core::time::Duration;

use http::{HeaderMap, Response, StatusCode};

use super::fields;

/// Returns the [`refusal`] of an HTTP response, for [`Retries::new`](crate::throttle::Retries::new) and
/// [`ThrottleLayer::pushback`](crate::ThrottleLayer::pushback).
#[must_use]
pub fn remote_refusals<B>(response: &Response<B>) -> Option<Duration> {
    refusal(response.status(), response.headers())
}

/// Returns the wait that a refusal demands, or zero without a demand.
///
/// A refusal has
///
/// * status 429,
/// * status 503 with a wait, or
/// * `grpc-status` `RESOURCE_EXHAUSTED` or `UNAVAILABLE` with a wait.
///
/// The longer of `grpc-retry-pushback-ms` and `RetryInfo` counts, or else `Retry-After`. A negative
/// `grpc-retry-pushback-ms` forbids retries.
///
/// For other response types, pass a closure to [`Retries::new`](crate::throttle::Retries::new).
#[must_use]
pub fn refusal(status: StatusCode, headers: &HeaderMap) -> Option<Duration> {
    if fields::is_from_cache(headers) || fields::forbids_retries(headers) {
        return None;
    }
    let asked = fields::asked(headers);
    match status {
        StatusCode::TOO_MANY_REQUESTS => Some(asked.unwrap_or_default()),
        StatusCode::SERVICE_UNAVAILABLE => asked,
        _ => asked.filter(|_| fields::is_grpc_refusal(headers)),
    }
}
