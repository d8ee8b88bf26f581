use core::time::Duration;

use http::{HeaderMap, Method, Request, Response, StatusCode};

use super::fields;
use crate::throttle::reader::Reader;

/// Copies GET, HEAD, PUT, DELETE and OPTIONS requests with a `Clone` body.
#[derive(Clone, Copy, Debug)]
pub struct IdempotentRequests;

impl<B: Clone> Reader<Request<B>> for IdempotentRequests {
    type Value = Option<Request<B>>;

    fn read(&self, request: &Request<B>) -> Self::Value {
        match *request.method() {
            Method::GET | Method::HEAD | Method::PUT | Method::DELETE | Method::OPTIONS => {
                Some(request.clone())
            }
            _ => None,
        }
    }
}

/// Reads the [`refusal`] from HTTP responses.
#[derive(Clone, Copy, Debug)]
pub struct RemoteRefusals;

impl<B> Reader<Response<B>> for RemoteRefusals {
    type Value = Option<Duration>;

    fn read(&self, response: &Response<B>) -> Option<Duration> {
        refusal(response.status(), response.headers())
    }
}

/// Returns the wait that a refusal demands, or zero without a demand.
///
/// A refusal has
///
/// * status 429,
/// * status 503 with a wait, or
/// * `grpc-status` `RESOURCE_EXHAUSTED` or `UNAVAILABLE` with a wait.
///
/// The longest of `Retry-After`, `grpc-retry-pushback-ms` and `RetryInfo` counts. A negative `grpc-retry-pushback-ms`
/// forbids retries.
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
