use http::header::CONTENT_TYPE;
use http::response::Parts;
use http::{HeaderMap, HeaderName, StatusCode};

use super::{ResponseEnd, Rule, Settle};
use crate::cost::number_in;

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// The status of a finished request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// The status of an HTTP response.
    Http(StatusCode),
    /// The status of a gRPC call, such as 16 for `UNAUTHENTICATED`.
    Grpc(u64),
}

impl Status {
    /// Returns whether the request failed, with HTTP status 400 or above or a gRPC status except `OK`.
    #[must_use]
    pub fn is_failure(self) -> bool {
        match self {
            Self::Http(status) => status.as_u16() >= 400,
            Self::Grpc(code) => code != 0,
        }
    }
}

/// Counts only requests that [fail](Status::is_failure), such as wrong passwords. See [`only_status`].
#[must_use]
#[doc(alias = "count_only_failures")]
#[doc(alias = "skipSuccessfulRequests")]
pub fn only_failures() -> impl Rule {
    only_status(Status::is_failure)
}

/// Counts only requests that do not [fail](Status::is_failure). See [`only_status`].
#[must_use]
#[doc(alias = "skipFailedRequests")]
pub fn only_successes() -> impl Rule {
    only_status(|status| !status.is_failure())
}

/// Counts only requests with a status that this closure accepts, and refunds the rest.
///
/// A gRPC call has the status in the headers or trailers. Calls without a status count, as do gRPC-Web calls.
///
/// ```
/// use http::StatusCode;
/// use tower_quota::settle::{self, Status};
/// use tower_quota::{Limit, Quota, key};
///
/// let wrong = |status| matches!(status, Status::Http(StatusCode::UNAUTHORIZED) | Status::Grpc(16));
/// let limit = Limit::new("login", Quota::per_hour(5)).by(key::client_ip()).settle(settle::only_status(wrong));
/// # let _ = limit;
/// ```
#[must_use]
pub fn only_status(counts: impl Fn(Status) -> bool + Send + Sync + 'static) -> impl Rule {
    OnlyStatus { counts }
}

struct OnlyStatus<F> {
    counts: F,
}

impl<F: Fn(Status) -> bool + Send + Sync + 'static> OnlyStatus<F> {
    fn of(&self, status: Status) -> Settle {
        if (self.counts)(status) {
            Settle::Keep
        } else {
            Settle::Refund
        }
    }
}

impl<F: Fn(Status) -> bool + Send + Sync + 'static> Rule for OnlyStatus<F> {
    fn at_head(&self, response: &Parts) -> Option<Settle> {
        // A proxy that does not know gRPC sends another status.
        if response.status == StatusCode::OK && is_grpc(&response.headers) {
            number_in(&response.headers, &GRPC_STATUS).map(|code| self.of(Status::Grpc(code)))
        } else {
            Some(self.of(Status::Http(response.status)))
        }
    }

    fn at_end(&self, end: &ResponseEnd<'_>) -> Settle {
        let code = end
            .trailers()
            .and_then(|trailers| number_in(trailers, &GRPC_STATUS));
        code.map_or(Settle::Keep, |code| self.of(Status::Grpc(code)))
    }
}

fn is_grpc(headers: &HeaderMap) -> bool {
    headers
        .get(CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
}
