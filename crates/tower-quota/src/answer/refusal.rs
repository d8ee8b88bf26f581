//! The seam that answers refused requests.

use core::error::Error;
use core::time::Duration;

use bytes::Bytes;
use http::{Response, StatusCode};
use tower_quota_core::{Decision, LimitStatus, Name};

use super::seconds::whole_seconds;
use super::telling::statuses;
use super::text::Text;
use crate::head::RequestHead;
use crate::key::CLOSURE_MARK;

/// When to ask again after the store failed: it may be back at once.
const STORE_RETRY: Duration = Duration::from_secs(1);

/// How many limits a sentence names. It travels in a header to gRPC clients.
const MOST_NAMED: usize = 5;

/// Answers refused HTTP requests. Closures do; the default is [`Negotiated`](crate::Negotiated).
///
/// Whatever the answer, the layer adds `Retry-After` and `Cache-Control: no-store` where they are left out, adds the
/// rate limit headers, and empties the body in answer to `HEAD`. Refused gRPC requests, which are posted over HTTP/2
/// or are gRPC-Web, are answered in gRPC's own way and do not come here.
///
/// ```
/// use http::Response;
/// use tower_quota::{MemoryStore, Policy, RateLimitLayer, Refused};
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
    jitter: Duration,
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
    /// The policy [blocks](crate::Policy::block) it.
    Blocked,
    /// The store could not be asked, and a limit [refuses](crate::OnStoreFailure::Refuse) then, or this instance's share
    /// is too small for the request. The error is for logs, not for clients.
    StoreFailure(&'a (dyn Error + Send + Sync + 'static)),
}

impl<'a> Refused<'a> {
    /// A refusal that is told with a wait longer by this jitter, if with any.
    pub(crate) const fn new(reason: Reason<'a>, head: RequestHead<'a>, jitter: Duration) -> Self {
        Self { reason, head, jitter }
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
            Reason::MissingKey(_) | Reason::Blocked | Reason::StoreFailure(_) => None,
        }
    }

    /// The limits that refuse.
    pub fn limits(&self) -> impl Iterator<Item = Name> + 'a {
        self.statuses().map(|standing| standing.name)
    }

    /// How the limits stand that refuse.
    pub(super) fn statuses(&self) -> impl Iterator<Item = &'a LimitStatus> + 'a {
        self.decision().into_iter().flat_map(statuses).filter(|standing| standing.outcome.is_refusal())
    }

    /// How long to wait before asking again, [jitter](crate::RateLimitLayer::retry_jitter) included; `None` when waiting
    /// does not help.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        let wait = match self.reason {
            Reason::OverQuota(decision) => decision.retry_after(),
            Reason::NeverFits(_) | Reason::MissingKey(_) | Reason::Blocked => None,
            Reason::StoreFailure(_) => Some(STORE_RETRY),
        };
        match wait {
            Some(wait) => Some(wait.saturating_add(self.jitter)),
            None => None,
        }
    }

    /// The fitting status: 429, 400 for a missing key, 403 for who is blocked, 503 for a store that failed.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        match self.reason {
            Reason::OverQuota(_) | Reason::NeverFits(_) => StatusCode::TOO_MANY_REQUESTS,
            Reason::MissingKey(_) => StatusCode::BAD_REQUEST,
            Reason::Blocked => StatusCode::FORBIDDEN,
            Reason::StoreFailure(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// A sentence for people: which limit, what is missing, when to retry. It holds nothing that the client sent and
    /// nothing about the store.
    #[must_use]
    pub fn detail(&self) -> String {
        let mut sentence = Text::new();
        self.write_reason(&mut sentence, b"\"", |out, name| out.extend(name.as_bytes()));
        self.write_retry(&mut sentence);
        String::from_utf8_lossy(&sentence.into_bytes()).into_owned()
    }

    /// Appends what of that sentence does not depend on the time, with such quotes, and with names as `put` writes them;
    /// nothing else has to be escaped.
    pub(super) fn write_reason(&self, out: &mut Text, quote: &[u8], put: impl Fn(&mut Text, &str)) {
        match self.reason {
            Reason::OverQuota(_) => {
                out.extend(b"Over the ");
                self.write_limits(out, quote, put);
            }
            Reason::NeverFits(_) => {
                out.extend(b"The request costs more than the ");
                self.write_limits(out, quote, put);
                out.extend(b" can ever admit");
            }
            Reason::MissingKey(scope) => {
                // That a closure would have read it is nothing to clients.
                let scope = scope.as_str();
                let missing = scope.strip_prefix(CLOSURE_MARK).unwrap_or(scope);
                out.extend(b"The request cannot be counted: it has no ");
                put(out, missing);
            }
            Reason::Blocked => out.extend(b"Requests like this one are not served"),
            Reason::StoreFailure(_) => out.extend(b"Rate limits cannot be checked at the moment"),
        }
    }

    /// Appends the rest of that sentence.
    pub(super) fn write_retry(&self, out: &mut Text) {
        match self.retry_after().map(whole_seconds) {
            Some(seconds) => write_seconds(seconds, out),
            None => out.extend(b"."),
        }
    }

    /// `limit "a"`, `limits "a" and "b"`, `limits "a", "b" and "c"`, `limits "a", "b", "c", "d", "e" and 2 others`.
    fn write_limits(&self, out: &mut Text, quote: &[u8], put: impl Fn(&mut Text, &str)) {
        let count = self.limits().count();
        out.extend(if count > 1 { b"limits" } else { b"limit" });
        let others = count.saturating_sub(MOST_NAMED);
        for (position, name) in self.limits().take(MOST_NAMED).enumerate() {
            let separator: &[u8] = match position {
                0 => b" ",
                _ if position + 1 == count => b" and ",
                _ => b", ",
            };
            out.extend(separator);
            out.extend(quote);
            put(out, name.as_str());
            out.extend(quote);
        }
        if others > 0 {
            out.extend(b" and ");
            out.number(others as u64);
            out.extend(if others == 1 { b" other" } else { b" others" });
        }
    }
}

/// Appends the end of a sentence that says when to retry.
#[inline]
pub(super) fn write_seconds(seconds: u64, out: &mut Text) {
    if seconds == 1 {
        return out.extend(b": retry in 1 second.");
    }
    out.extend(b": retry in ");
    out.number(seconds);
    out.extend(b" seconds.");
}
