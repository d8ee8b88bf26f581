//! The rate limit header fields: a pure function of a decision and the policy it was made on.
//!
//! `RateLimit` and `RateLimit-Policy` follow draft-ietf-httpapi-ratelimit-headers-11, `Retry-After` RFC 9110 section
//! 10.2.3. On an admitted request `t` is the time until the limit is whole again: a client who spreads its `r` units
//! over `t` seconds is always admitted, since they are there already. On a refusal `t` is the time after which the
//! request would be admitted, which is what the refused client needs, and never later than `Retry-After`.

use core::time::Duration;

use http::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use tollgate_core::{Decision, Name, Outcome, Standing};

use super::structured::{integer, push_integer, push_string};
use crate::limit::Limit;

const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const X_POLICY: HeaderName = HeaderName::from_static("x-ratelimit-policy");
const X_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const X_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const X_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// The headers that scripts in browsers cannot read unless CORS exposes them: give them to
/// `CorsLayer::expose_headers` of tower-http, and put that layer outside this one.
pub const EXPOSED_HEADERS: [HeaderName; 7] =
    [RETRY_AFTER, RATE_LIMIT, RATE_LIMIT_POLICY, X_LIMIT, X_REMAINING, X_RESET, X_POLICY];

/// The fields of a policy's limits, as far as they never change.
#[derive(Debug)]
pub(crate) struct Fields {
    limits: Vec<Items>,
    /// `RateLimit-Policy` when every limit applies.
    whole_policy: Option<HeaderValue>,
}

/// The list items of one limit.
#[derive(Debug)]
struct Items {
    name: Name,
    /// `"burst";q=20;w=2`
    policy: Vec<u8>,
    /// `"burst";r=`
    standing: Vec<u8>,
}

impl Fields {
    pub(crate) fn new(limits: &[Limit]) -> Self {
        let limits: Vec<Items> = limits.iter().filter(|limit| !limit.is_shadow()).map(Items::new).collect();
        let whole_policy = field(list(limits.iter(), |out, items| out.extend_from_slice(&items.policy)));
        Self { limits, whole_policy }
    }

    /// Adds what a decision has to say to the headers of its response. Lists are added to those of an inner limiter; of
    /// the `X-RateLimit` fields, which cannot be lists, the stricter three stay.
    pub(crate) fn write(&self, decision: &Decision, headers: &mut HeaderMap) {
        if let Some(policy) = self.policy(decision) {
            headers.append(RATE_LIMIT_POLICY, policy);
        }
        if let Some(standings) = self.standings(decision) {
            headers.append(RATE_LIMIT, standings);
        }
        if let Some(binding) = decision.binding() {
            write_binding(binding, headers);
        }
    }

    fn policy(&self, decision: &Decision) -> Option<HeaderValue> {
        if decision.enforced().count() == self.limits.len() {
            return self.whole_policy.clone();
        }
        let applying = decision.enforced().filter_map(|standing| self.items(standing.name));
        field(list(applying, |out, items| out.extend_from_slice(&items.policy)))
    }

    /// On a refusal only the limits that refuse: the others would tell the client to come back sooner.
    fn standings(&self, decision: &Decision) -> Option<HeaderValue> {
        let told = decision.enforced().filter(|standing| decision.is_allowed() || standing.outcome.is_refusal());
        field(list(
            told.filter_map(|standing| Some((standing, self.items(standing.name)?))),
            |out, (standing, items)| {
                out.extend_from_slice(&items.standing);
                push_integer(out, standing.remaining);
                let window = match standing.outcome {
                    Outcome::Allow | Outcome::Wait(_) => standing.reset_after,
                    Outcome::Refuse(retry) => retry,
                    Outcome::Never => return,
                };
                out.extend_from_slice(b";t=");
                push_integer(out, whole_seconds(window));
            },
        ))
    }

    fn items(&self, name: Name) -> Option<&Items> {
        self.limits.iter().find(|items| items.name == name)
    }
}

impl Items {
    fn new(limit: &Limit) -> Self {
        let mut quoted = Vec::new();
        push_string(&mut quoted, limit.name.as_str());

        let mut policy = quoted.clone();
        policy.extend_from_slice(b";q=");
        push_integer(&mut policy, limit.quota.capacity());
        policy.extend_from_slice(b";w=");
        push_integer(&mut policy, whole_seconds(limit.quota.horizon()).max(1));

        quoted.extend_from_slice(b";r=");
        Self { name: limit.name, policy, standing: quoted }
    }
}

/// Seconds, rounded up: a wait is never told shorter than it is.
pub(crate) fn whole_seconds(span: Duration) -> u64 {
    span.as_secs().saturating_add(u64::from(span.subsec_nanos() > 0))
}

fn write_binding(binding: &Standing, headers: &mut HeaderMap) {
    if told_remaining(headers).is_some_and(|remaining| remaining <= binding.remaining) {
        return;
    }
    headers.insert(X_LIMIT, integer(binding.limit).into());
    headers.insert(X_REMAINING, integer(binding.remaining).into());
    headers.insert(X_RESET, integer(whole_seconds(binding.reset_after)).into());
}

/// What an inner limiter says is left. One of the three fields without the others is no limiter's word: it neither stays
/// nor keeps ours away.
fn told_remaining(headers: &HeaderMap) -> Option<u64> {
    let number = |name| headers.get(name)?.to_str().ok()?.parse::<u64>().ok();
    number(X_LIMIT).and(number(X_RESET)).and(number(X_REMAINING))
}

/// Says that the store had no part in what the other fields say.
pub(crate) fn write_degraded(headers: &mut HeaderMap) {
    headers.insert(X_POLICY, HeaderValue::from_static("degraded"));
}

/// Adds what an instance has decided by its own counters. The standard fields speak of quotas that hold for a client
/// wherever it asks, and these do not: they go into the `X-RateLimit` fields alone.
pub(crate) fn write_local(decision: &Decision, headers: &mut HeaderMap) {
    if let Some(binding) = decision.binding() {
        write_binding(binding, headers);
    }
}

/// Says that nothing was counted, unless an inner limiter has.
pub(crate) fn write_uncounted(headers: &mut HeaderMap) {
    headers.entry(X_REMAINING).or_insert(const { HeaderValue::from_static("-1") });
}

/// The members of a list field.
fn list<T>(members: impl Iterator<Item = T>, push: impl Fn(&mut Vec<u8>, T)) -> Vec<u8> {
    let mut out = Vec::with_capacity(96);
    for member in members {
        if !out.is_empty() {
            out.extend_from_slice(b", ");
        }
        push(&mut out, member);
    }
    out
}

/// A field's value, if there is anything to say.
fn field(value: Vec<u8>) -> Option<HeaderValue> {
    // Numbers and the checked names of limits always make a value.
    if value.is_empty() { None } else { HeaderValue::try_from(value).ok() }
}
