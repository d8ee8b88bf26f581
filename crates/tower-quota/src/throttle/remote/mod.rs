mod date;
mod fields;
mod refused;
mod retry_info;

use core::time::Duration;

use http::{HeaderMap, Response, StatusCode};

pub use self::refused::{refusal, remote_refusals};

/// Returns the [`pushback`] of an HTTP response, for [`ThrottleLayer::pushback`](crate::ThrottleLayer::pushback).
#[must_use]
pub fn remote_headers<B>(response: &Response<B>) -> Option<Duration> {
    pushback(response.status(), response.headers())
}

/// Returns the wait before the next request, from status and header fields.
///
/// The first valid wait counts:
///
/// 1. on errors (from 400, or `grpc-status` above 0), the longer of `grpc-retry-pushback-ms` and `RetryInfo` in
///    `grpc-status-details-bin`, or else `Retry-After`,
/// 2. the longest spent window in `RateLimit` (drafts 7 to 11),
/// 3. `RateLimit-Reset` with `RateLimit-Remaining: 0` (drafts 0 to 6),
/// 4. likewise `X-RateLimit` and `X-Rate-Limit`. A reset above 10^9 is a Unix timestamp.
///
/// Fields in whole seconds slow your client down if the remote's quota refills many times a second. Obey only
/// refusals then, by [`remote_refusals`].
///
/// The present is the response's `Date`, or else your clock. Redirections, cached responses (`Age` above 0), values
/// above 1,024 bytes (details 8 KiB), and lines after the eighth are ignored. Only a layer bounds the wait.
///
/// ```
/// use std::time::Duration;
/// use http::{HeaderMap, StatusCode};
/// use tower_quota::throttle::pushback;
///
/// let mut headers = HeaderMap::new();
/// headers.insert("ratelimit", "\"minute\";r=0;t=12, \"day\";r=90;t=3600".parse()?);
/// assert_eq!(pushback(StatusCode::OK, &headers), Some(Duration::from_secs(12)));
/// headers.insert("retry-after", "30".parse()?);
/// assert_eq!(pushback(StatusCode::TOO_MANY_REQUESTS, &headers), Some(Duration::from_secs(30)));
/// # Ok::<(), http::header::InvalidHeaderValue>(())
/// ```
#[must_use]
pub fn pushback(status: StatusCode, headers: &HeaderMap) -> Option<Duration> {
    if status.is_redirection() || fields::is_from_cache(headers) {
        return None;
    }
    let is_error =
        status.is_client_error() || status.is_server_error() || fields::is_grpc_error(headers);
    let asked = if is_error {
        fields::asked(headers)
    } else {
        None
    };
    asked.or_else(|| fields::spent_quota(headers))
}

#[cfg(test)]
mod tests;
