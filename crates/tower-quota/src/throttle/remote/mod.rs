//! The pushbacks of a remote, read from the header fields of its responses.

mod date;
mod fields;
mod refused;
mod retry_info;

use core::time::Duration;

use http::{HeaderMap, Response, StatusCode};

pub use self::refused::{IdempotentRequests, RemoteRefusals, refusal};
use super::reader::Reader;

/// A reader of pushbacks of HTTP responses, made by [`remote_headers`].
#[derive(Clone, Copy, Debug, Default)]
pub struct RemoteHeaders(());

/// Returns a reader of `Retry-After` and the `RateLimit` fields, for HTTP responses.
///
/// Pass it to [`heed`](crate::ThrottleLayer::heed). It returns the [`pushback`] of the response's status and header
/// fields.
#[must_use]
pub const fn remote_headers() -> RemoteHeaders {
    RemoteHeaders(())
}

impl<B> Reader<Response<B>> for RemoteHeaders {
    type Value = Option<Duration>;

    fn read(&self, response: &Response<B>) -> Option<Duration> {
        pushback(response.status(), response.headers())
    }
}

/// Returns the wait for the next request, from the status and the header fields of a response.
///
/// The wait is the first of these that is present and valid:
///
/// 1. on an error (400 to 599, or a `grpc-status` above 0), the longest of `Retry-After` (seconds or a date),
///    `grpc-retry-pushback-ms`, and the `RetryInfo` in `grpc-status-details-bin`,
/// 2. the longest window of a spent quota in `RateLimit` (drafts 7 to 11),
/// 3. `RateLimit-Reset` with `RateLimit-Remaining: 0` (drafts 0 to 6),
/// 4. the same of `X-RateLimit` and `X-Rate-Limit`. A reset above 10^9 is a Unix timestamp.
///
/// Instants are relative to the `Date` of the response, or else to the system's clock. The function ignores redirections,
/// responses from a cache (`Age` above 0), unknown formats, values of more than 1,024 bytes (details: 8 KiB), and lines
/// of a field after the eighth. The wait is not bounded, unlike in a layer with a
/// [`max_pushback`](crate::ThrottleLayer::max_pushback).
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
