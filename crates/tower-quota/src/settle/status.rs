//! Rules that count only requests with some results.

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
    /// The status of a gRPC call, such as 16 for `UNAUTHENTICATED`, from its headers or trailers.
    Grpc(u64),
}

impl Status {
    /// Returns whether the request failed: HTTP status 400 or above, or a gRPC status except `OK`.
    #[must_use]
    pub fn is_failure(self) -> bool {
        match self {
            Self::Http(status) => status.as_u16() >= 400,
            Self::Grpc(code) => code != 0,
        }
    }
}

/// Counts only requests that [fail](Status::is_failure), and refunds others.
///
/// For logins, so that only wrong passwords count. A gRPC call that was cut off before its status counts.
#[must_use]
#[doc(alias = "count_only_failures")]
#[doc(alias = "skipSuccessfulRequests")]
pub fn only_failures() -> impl Rule {
    only_status(Status::is_failure)
}

/// Counts only requests that do not [fail](Status::is_failure), and refunds others.
///
/// A gRPC call that was cut off before its status counts.
#[must_use]
#[doc(alias = "skipFailedRequests")]
pub fn only_successes() -> impl Rule {
    only_status(|status| !status.is_failure())
}

/// Counts only requests whose status this closure accepts, and refunds others.
///
/// A gRPC call's status is in the trailers after its messages, or in the headers of a response without messages, so the
/// rule waits for the end of the call. A call that is cut off before its status counts. So does a gRPC-Web call, where
/// trailers are a part of the body.
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
        // Another status comes from a server or proxy that does not know gRPC.
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
