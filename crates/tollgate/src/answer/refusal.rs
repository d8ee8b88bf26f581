//! The seam that answers refused requests.

use core::error::Error;
use core::time::Duration;

use bytes::Bytes;
use http::{Response, StatusCode};
use tollgate_core::{Decision, Name};

use super::headers::whole_seconds;
use crate::head::RequestHead;
use crate::key::CLOSURE_MARK;

/// When to ask again after the store failed: it may be back at once.
const STORE_RETRY: Duration = Duration::from_secs(1);

/// Answers refused HTTP requests. Closures do; the default is [`ProblemDetails`](crate::ProblemDetails).
///
/// Whatever the answer, the layer adds `Retry-After` and `Cache-Control: no-store` where they are left out, adds the
/// rate limit headers, and empties the body in answer to `HEAD`. Refused gRPC requests, which are posted over HTTP/2
/// or are gRPC-Web, are answered in gRPC's own way and do not come here.
///
/// ```
/// use http::Response;
/// use tollgate::{MemoryStore, Policy, RateLimitLayer, Refused};
///
/// let layer = RateLimitLayer::new(MemoryStore::new(), Policy::new()).refusal(|refused: &Refused<'_>| {
///     let mut response = Response::new(refused.detail());
///     *response.status_mut() = refused.status();
///     response
/// });
/// # let _ = layer;
/// ```
pub trait Refusal: Send + Sync + 'static {
    /// The whole answer to a refused request.
    fn respond(&self, refused: &Refused<'_>) -> Response<Bytes>;
}

impl<F, B> Refusal for F
where
    F: Fn(&Refused<'_>) -> Response<B> + Send + Sync + 'static,
    B: Into<Bytes>,
{
    fn respond(&self, refused: &Refused<'_>) -> Response<Bytes> {
        self(refused).map(Into::into)
    }
}

/// A refused request, and why.
#[derive(Clone, Copy, Debug)]
pub struct Refused<'a> {
    reason: Reason<'a>,
    head: RequestHead<'a>,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Reason<'a> {
    /// It is over a quota, and would be admitted later.
    OverQuota(&'a Decision),
    /// It costs more than a limit ever holds.
    NeverFits(&'a Decision),
    /// It lacks a key of this scope, and a limit refuses such requests.
    MissingKey(Name),
    /// The store could not be asked, and a limit [refuses](crate::OnStoreFailure::Refuse) then, or this instance's share
    /// is too small for the request. The error is for logs, not for clients.
    StoreFailure(&'a (dyn Error + Send + Sync + 'static)),
}

impl<'a> Refused<'a> {
    pub(crate) const fn new(reason: Reason<'a>, head: RequestHead<'a>) -> Self {
        Self { reason, head }
    }

    /// Why.
    #[must_use]
    pub const fn reason(&self) -> Reason<'a> {
        self.reason
    }

    /// The request that is refused.
    #[must_use]
    pub const fn head(&self) -> RequestHead<'a> {
        self.head
    }

    /// The store's decision, if there was one.
    #[must_use]
    pub const fn decision(&self) -> Option<&'a Decision> {
        match self.reason {
            Reason::OverQuota(decision) | Reason::NeverFits(decision) => Some(decision),
            Reason::MissingKey(_) | Reason::StoreFailure(_) => None,
        }
    }

    /// The limits that refuse.
    pub fn limits(&self) -> impl Iterator<Item = Name> + 'a {
        let standings = self.decision().into_iter().flat_map(Decision::enforced);
        standings.filter(|standing| standing.outcome.is_refusal()).map(|standing| standing.name)
    }

    /// How long to wait before asking again; `None` when waiting does not help.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self.reason {
            Reason::OverQuota(decision) => decision.retry_after(),
            Reason::NeverFits(_) | Reason::MissingKey(_) => None,
            Reason::StoreFailure(_) => Some(STORE_RETRY),
        }
    }

    /// The fitting status: 429, 400 for a missing key, 503 for a store that failed.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        match self.reason {
            Reason::OverQuota(_) | Reason::NeverFits(_) => StatusCode::TOO_MANY_REQUESTS,
            Reason::MissingKey(_) => StatusCode::BAD_REQUEST,
            Reason::StoreFailure(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// A sentence for people: which limit, what is missing, when to retry. It holds nothing that the client sent and
    /// nothing about the store.
    #[must_use]
    pub fn detail(&self) -> String {
        let what = match self.reason {
            Reason::OverQuota(_) => format!("Over the {}", self.named_limits()),
            Reason::NeverFits(_) => {
                return format!("The request costs more than the {} can ever admit.", self.named_limits());
            }
            Reason::MissingKey(scope) => {
                // That a closure would have read it is nothing to clients.
                let scope = scope.as_str();
                let missing = scope.strip_prefix(CLOSURE_MARK).unwrap_or(scope);
                return format!("The request cannot be counted: it has no {missing}.");
            }
            Reason::StoreFailure(_) => String::from("Rate limits cannot be checked at the moment"),
        };
        match self.retry_after().map(whole_seconds) {
            Some(1) => format!("{what}: retry in 1 second."),
            Some(seconds) => format!("{what}: retry in {seconds} seconds."),
            None => format!("{what}."),
        }
    }

    /// `limit "a"`, `limits "a" and "b"`, `limits "a", "b" and "c"`.
    fn named_limits(&self) -> String {
        let mut names: Vec<String> = self.limits().map(|name| format!("\"{name}\"")).collect();
        match names.pop() {
            Some(last) if names.is_empty() => format!("limit {last}"),
            Some(last) => format!("limits {} and {last}", names.join(", ")),
            None => String::from("limit"),
        }
    }
}
