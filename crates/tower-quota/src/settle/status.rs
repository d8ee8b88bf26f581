use http::response::Parts;
use http::{HeaderMap, StatusCode};

use super::{ResponseEnd, Rule, Settle};
use crate::cost::number_in;
use crate::protocol::{GRPC_STATUS, GrpcContentType};

/// Counts only requests that fail, such as wrong passwords, and refunds the rest.
///
/// A request fails with HTTP status 400 or above, or a gRPC status except `OK`. A gRPC call has the status in the headers
/// or trailers. Calls without a status count, as do gRPC-Web calls.
#[must_use]
#[doc(alias = "count_only_failures")]
#[doc(alias = "skipSuccessfulRequests")]
pub fn only_failures() -> impl Rule {
    Only { failures: true }
}

/// Counts only requests that do not fail, and refunds the rest. See [`only_failures`].
#[must_use]
#[doc(alias = "skipFailedRequests")]
pub fn only_successes() -> impl Rule {
    Only { failures: false }
}

struct Only {
    failures: bool,
}

impl Only {
    fn of(&self, is_failure: bool) -> Settle {
        if is_failure == self.failures {
            Settle::Keep
        } else {
            Settle::Refund
        }
    }

    fn of_grpc(&self, headers: &HeaderMap) -> Option<Settle> {
        Some(self.of(number_in(headers, &GRPC_STATUS)? != 0))
    }
}

impl Rule for Only {
    fn at_head(&self, response: &Parts) -> Option<Settle> {
        // A proxy that does not know gRPC sends another status.
        if response.status == StatusCode::OK && GrpcContentType::of(&response.headers).is_some() {
            self.of_grpc(&response.headers)
        } else {
            Some(self.of(response.status.as_u16() >= 400))
        }
    }

    fn at_end(&self, end: &ResponseEnd<'_>) -> Settle {
        let of_trailers = end.trailers.and_then(|trailers| self.of_grpc(trailers));
        of_trailers.unwrap_or(Settle::Keep)
    }
}
