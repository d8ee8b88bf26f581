use core::fmt::{self, Write};
use core::time::Duration;
use std::sync::LazyLock;

use http::header::HeaderValue;
use http::{Request, StatusCode};
use tower_quota_core::{Decision, LimitStatus, Name};

use super::reason::Reason;
use super::text::ceil_secs;
use crate::head::RequestHead;
use crate::key::MissingPart;
use crate::policy::Plan;

const STORE_RETRY: Duration = Duration::from_secs(1);

pub(super) const DEFAULT_DOMAIN: Name = Name::new("tower-quota");

/// The maximum number of limits in a message, which gRPC clients get in a header.
pub(super) const MAX_NAMED_LIMITS: usize = 5;

/// A refused request, for your [`on_refused`](crate::RateLimitLayer::on_refused) closure.
///
/// You can also refuse by a decision of your own [`Limiter`](crate::Limiter).
///
/// ```
/// use tower_quota::{Limiter, MemoryStore, Quota, Refused, response::problem_details};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let limiter = Limiter::new(MemoryStore::new(), "exports", Quota::per_minute(1));
/// limiter.check("ann").await?;
/// let decision = limiter.check("ann").await?;
/// let refused = Refused::of(&decision).expect("the second export is over the limit");
/// let response = problem_details(&refused);
/// assert_eq!(response.status(), 429);
/// assert_eq!(response.headers()["retry-after"], "60");
/// # Ok::<_, std::convert::Infallible>(())
/// # });
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Refused<'a> {
    pub(super) reason: Reason<'a>,
    pub(super) head: RequestHead<'a>,
    pub(super) jitter: Duration,
    pub(super) oversized: &'a [(Name, u64)],
    pub(super) grpc_domain: Name,
    /// The plan, which has prepared names.
    pub(super) plan: Option<&'a Plan>,
}

impl<'a> Refused<'a> {
    /// Returns the refusal by a decision, with an empty head, unless the request was admitted.
    #[must_use]
    pub fn of(decision: &'a Decision) -> Option<Self> {
        static NO_REQUEST: LazyLock<Request<()>> = LazyLock::new(Request::default);
        let head = RequestHead::of(&*NO_REQUEST);
        let is_refused = !decision.is_allowed();
        is_refused.then(|| Self {
            reason: Reason::of(decision),
            head,
            jitter: Duration::ZERO,
            oversized: &[],
            grpc_domain: DEFAULT_DOMAIN,
            plan: None,
        })
    }

    /// Returns the refusal of a request for which the service has no capacity now.
    #[must_use]
    pub const fn overloaded(head: RequestHead<'a>, retry_after: Duration) -> Self {
        Self {
            reason: Reason::Overloaded(retry_after),
            head,
            jitter: Duration::ZERO,
            oversized: &[],
            grpc_domain: DEFAULT_DOMAIN,
            plan: None,
        }
    }

    /// Returns the reason of the refusal.
    #[must_use]
    pub const fn reason(&self) -> Reason<'a> {
        self.reason
    }

    /// Returns the head of the request.
    #[must_use]
    pub const fn head(&self) -> RequestHead<'a> {
        self.head
    }

    /// Returns the decision of the store, if the store decided.
    #[must_use]
    pub const fn decision(&self) -> Option<&'a Decision> {
        match self.reason {
            Reason::OverQuota(decision) | Reason::NeverFits(decision) => Some(decision),
            _ => None,
        }
    }

    /// Returns the names of the refusing limits.
    pub fn limits(&self) -> impl Iterator<Item = Name> + 'a {
        self.refusing_statuses().map(|status| status.name)
    }

    pub(super) fn refusing_statuses(&self) -> impl Iterator<Item = &'a LimitStatus> + 'a {
        self.decision()
            .into_iter()
            .flat_map(Decision::enforced)
            .filter(|status| status.outcome.is_refusal())
    }

    /// Returns the wait, with [jitter](crate::RateLimitLayer::retry_jitter), if a retry helps.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        let wait = match self.reason {
            Reason::OverQuota(decision) => decision.retry_after(),
            Reason::StoreFailure(_) => Some(STORE_RETRY),
            Reason::Overloaded(wait) => Some(wait),
            _ => None,
        };
        Some(wait?.saturating_add(self.jitter))
    }

    /// Returns the seconds of `Retry-After`, rounded up and at least 1.
    #[must_use]
    pub fn retry_after_secs(&self) -> Option<u64> {
        Some(ceil_secs(self.retry_after()?).max(1))
    }

    /// Returns the default HTTP status of the [`Reason`].
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        self.reason.answer().status
    }

    /// Returns a message for people, without data of clients or stores.
    #[must_use]
    pub fn detail(&self) -> String {
        let mut sentence = String::with_capacity(128);
        // Writing to a string cannot fail.
        let _ = self.write_detail(&mut sentence);
        sentence
    }

    pub(super) fn challenge(&self) -> Option<HeaderValue> {
        let Reason::Unauthenticated(part) = self.reason else {
            return None;
        };
        // These prefixes are the scopes of `key::basic_user`, `key::bearer` and `key::jwt_claim`.
        let scope = part.scope();
        let scope = scope.as_str();
        Some(HeaderValue::from_static(match scope {
            "basic user" => "Basic realm=\"api\", charset=\"UTF-8\"",
            _ if scope.ends_with("bearer token") => "Bearer",
            // API keys in headers have no registered scheme, and clients skip unknown schemes.
            _ => "ApiKey",
        }))
    }

    fn write_detail(&self, out: &mut String) -> fmt::Result {
        match self.reason {
            Reason::OverQuota(_) => {
                out.push_str("Over the ");
                self.write_limits(out)?;
            }
            Reason::NeverFits(decision) => {
                out.push_str("The request costs more than the ");
                self.write_limits(out)?;
                out.push_str(" can ever admit");
                if let Some(status) = decision.tightest() {
                    let mut oversized = self.oversized.iter();
                    match oversized.find(|(limit, _)| *limit == status.name) {
                        Some((_, cost)) => write!(out, ": {cost} instead of {}", status.limit)?,
                        None => write!(out, ": at most {}", status.limit)?,
                    }
                }
            }
            Reason::MissingKey(part) => {
                out.push_str("The request cannot be counted: ");
                write_missing(out, part)?;
            }
            Reason::Unauthenticated(part) => {
                out.push_str("The request is not authenticated: ");
                write_missing(out, part)?;
            }
            Reason::NoPeerAddress => out.push_str("The server does not know the client's address"),
            Reason::TooManyLimits => {
                out.push_str("The server has too many rate limits for the request")
            }
            Reason::Undecidable(_) => out.push_str("The server cannot check its rate limits"),
            Reason::Blocked => out.push_str("Requests like this one are not served"),
            Reason::StoreFailure(_) => out.push_str("Rate limits cannot be checked at the moment"),
            Reason::Overloaded(_) => out.push_str("The service is overloaded"),
        }
        match self.retry_after_secs() {
            None => out.push('.'),
            Some(1) => out.push_str(": retry in 1 second."),
            Some(seconds) => write!(out, ": retry in {seconds} seconds.")?,
        }
        Ok(())
    }

    /// Writes `limit "a"`, `limits "a" and "b"`, or up to five limits `and 2 others`.
    fn write_limits(&self, out: &mut String) -> fmt::Result {
        let count = self.limits().count();
        out.push_str(if count > 1 { "limits" } else { "limit" });
        for (position, name) in self.limits().take(MAX_NAMED_LIMITS).enumerate() {
            out.push_str(match position {
                0 => " ",
                _ if position + 1 == count => " and ",
                _ => ", ",
            });
            for part in ["\"", name.as_str(), "\""] {
                out.push_str(part);
            }
        }
        match count.saturating_sub(MAX_NAMED_LIMITS) {
            0 => Ok(()),
            1 => write!(out, " and 1 other"),
            others => write!(out, " and {others} others"),
        }
    }
}

fn write_missing(out: &mut String, part: MissingPart) -> fmt::Result {
    match part.is_conflict() {
        true => write!(out, "it has conflicting values of {part}"),
        false => write!(out, "it has no {part}"),
    }
}
