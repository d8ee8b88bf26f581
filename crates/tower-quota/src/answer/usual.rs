//! The answers that most requests get: clients are told by draft 11 alone, of every limit and by its own quota. They are
//! made ahead, but for the numbers.

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, Entry, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, VARY};
use http::{Method, Response, StatusCode};
use tower_quota_core::{Decision, LimitStatus, Outcome};

use super::accept::Kind;
use super::answers::NO_STORE;
use super::grpc::GrpcType;
use super::negotiated::ACCEPT_VARIES;
use super::overdrawn::{Overdrawn, Refusing};
use super::problem::PROBLEM_JSON;
use super::refusal::Refused;
use super::seconds::whole_seconds;
use super::style::{RATE_LIMIT, RATE_LIMIT_POLICY, Statuses, policy};
use super::text::Text;
use crate::limit::Limit;

/// Makes these answers. The headers of each are a copy of some that are kept, in which one value is put or two: to hash
/// the names and to find their places would cost as much as all else.
pub(crate) struct Usual {
    standings: Statuses,
    policy: HeaderValue,
    overdrawn: Overdrawn,
    /// What is first is `RateLimit`, without its value.
    admitted: HeaderMap,
    /// What is first is `RateLimit`, then comes `Retry-After`; both without their values.
    refused: HeaderMap,
}

/// What the response to an admitted request is told.
#[derive(Debug)]
pub(crate) struct Brief {
    usual: Arc<Usual>,
    list: HeaderValue,
}

/// The answer to a request over its quota, which is put together where it is wanted: it is large.
#[derive(Debug)]
pub(crate) struct Denial {
    usual: Arc<Usual>,
    /// The list of standings, the seconds to wait, and the body.
    text: Bytes,
    /// How long the first two are.
    lengths: [usize; 2],
}

impl Usual {
    /// For these limits; `None` where there are none.
    pub(super) fn new(limits: &[Limit]) -> Option<Self> {
        let policy = policy(limits)?;
        let unknown = HeaderValue::from_static("");
        let mut admitted = HeaderMap::new();
        admitted.insert(&RATE_LIMIT, unknown.clone());
        let mut refused = admitted.clone();
        refused.insert(RETRY_AFTER, unknown);
        for headers in [&mut admitted, &mut refused] {
            headers.insert(&RATE_LIMIT_POLICY, policy.clone());
        }
        refused.insert(CONTENT_TYPE, PROBLEM_JSON.clone());
        refused.insert(VARY, ACCEPT_VARIES.clone());
        refused.insert(CACHE_CONTROL, NO_STORE.clone());
        let (standings, overdrawn) = (Statuses::new(limits), Overdrawn::new(limits));
        Some(Self { standings, policy, overdrawn, admitted, refused })
    }

    /// What there is to tell of a decision that admits its request; `None` where that is not the usual.
    #[inline]
    pub(crate) fn brief(self: &Arc<Self>, decision: &Decision) -> Option<Brief> {
        let mut list = Text::new();
        let is_usual = self.write(decision, |_, _| true, &mut list);
        let list = HeaderValue::from_maybe_shared(list.into_bytes()).ok()?;
        is_usual.then(|| Brief { usual: Arc::clone(self), list })
    }

    /// The answer to a request over its quota; `None` where that is not the usual.
    #[inline]
    pub(crate) fn denial(self: &Arc<Self>, refused: &Refused<'_>) -> Option<Denial> {
        let (head, decision) = (refused.head(), refused.decision()?);
        let Outcome::Refuse(wait) = decision.outcome() else { return None };
        let has_usual_form = head.method() != Method::HEAD
            && GrpcType::of(head).is_none()
            && Kind::wanted(head.headers()) == Kind::Problem;
        if !has_usual_form {
            return None;
        }
        let (mut text, mut refusing) = (Text::new(), Refusing::default());
        let is_told = |position, standing: &LimitStatus| {
            let refuses = standing.outcome.is_refusal();
            if refuses {
                refusing.add(position);
            }
            refuses
        };
        let is_usual = self.write(decision, is_told, &mut text);
        let list = text.len();
        text.number(whole_seconds(wait).max(1));
        let lengths = [list, text.len() - list];
        self.overdrawn.write(refused, whole_seconds(wait), refusing, &mut text);
        let text = text.into_bytes();
        is_usual.then(|| Denial { usual: Arc::clone(self), text, lengths })
    }

    /// Appends the standings that are told. Whether the decision is about all limits, in their order.
    #[inline]
    fn write(&self, decision: &Decision, mut is_told: impl FnMut(usize, &LimitStatus) -> bool, out: &mut Text) -> bool {
        let mut standings = decision.enforced();
        let begin = out.len();
        for (position, own) in self.standings.iter().enumerate() {
            match standings.next() {
                Some(standing) if own.is_of(standing) => {
                    if is_told(position, standing) {
                        own.write(standing, retry_after(standing), begin, out);
                    }
                }
                _ => return false,
            }
        }
        standings.next().is_none()
    }
}

impl Brief {
    /// Writes it into the headers of the response, whatever an inner limiter has told.
    #[inline]
    pub(crate) fn write(self, headers: &mut HeaderMap) {
        let Self { usual, list } = self;
        if headers.is_empty() {
            *headers = usual.admitted.clone();
            if let Some(slot) = headers.values_mut().next() {
                *slot = list;
            }
        } else {
            add(headers, &RATE_LIMIT_POLICY, usual.policy.clone());
            add(headers, &RATE_LIMIT, list);
        }
    }
}

impl Denial {
    /// The response, with a body made of these bytes.
    #[inline]
    pub(crate) fn response<B>(self, body: impl FnOnce(Bytes) -> B) -> Response<B> {
        let Self { usual, mut text, lengths } = self;
        let mut headers = usual.refused.clone();
        for (slot, length) in headers.values_mut().zip(lengths) {
            // Numbers and the checked names of limits always make a value.
            if let Ok(value) = HeaderValue::from_maybe_shared(text.split_to(length)) {
                *slot = value;
            }
        }
        let mut response = Response::new(body(text));
        *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
        *response.headers_mut() = headers;
        response
    }
}

/// When a request that this limit refuses would pass.
const fn retry_after(standing: &LimitStatus) -> Option<Duration> {
    match standing.outcome {
        Outcome::Refuse(retry) => Some(retry),
        Outcome::Allow | Outcome::Wait(_) | Outcome::Never => None,
    }
}

/// Adds to the list of an inner limiter. To what another draft has written nothing can be added: clients would understand
/// neither.
fn add(headers: &mut HeaderMap, name: &'static HeaderName, value: HeaderValue) {
    match headers.entry(name) {
        Entry::Vacant(entry) => _ = entry.insert(value),
        Entry::Occupied(mut entry) if entry.get().as_bytes().starts_with(b"\"") => entry.append(value),
        Entry::Occupied(_) => {}
    }
}

impl fmt::Debug for Usual {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Usual").field("policy", &self.policy).finish_non_exhaustive()
    }
}
