//! `RateLimit` and `RateLimit-Policy` of draft-ietf-httpapi-ratelimit-headers-11, on the wire since draft 8.
//!
//! On an admitted request `t` is the time until the limit is whole again: a client who spreads its `r` units over `t`
//! seconds is always admitted, since they are there already. On a refusal `t` is the time after which the request would
//! be admitted, which is what the refused client needs, and never later than `Retry-After`.

use http::header::{HeaderMap, HeaderName};
use tollgate_core::{Name, Outcome, Standing};

use super::super::partition::PartitionKey;
use super::super::seconds::whole_seconds;
use super::super::structured::{push_integer, push_string};
use super::super::telling::Telling;
use super::Style;
use super::names::{RATE_LIMIT, RATE_LIMIT_POLICY};
use super::policies::{Dialect, Entry, Policies, separate, value};
use crate::limit::Limit;

#[derive(Debug)]
pub(super) struct Draft11 {
    policies: Policies,
    /// `"burst";r=`
    standings: Vec<(Name, Vec<u8>)>,
}

impl Draft11 {
    pub(super) fn new(limits: &[Limit]) -> Self {
        let standing = |limit: &Limit| {
            let mut quoted = Vec::new();
            push_string(&mut quoted, limit.name.as_str());
            quoted.extend_from_slice(b";r=");
            (limit.name, quoted)
        };
        Self {
            policies: Policies::new(limits, Dialect { member: push_policy, tells: |_, _| true }),
            standings: limits.iter().map(standing).collect(),
        }
    }

    fn push_standing(&self, out: &mut Vec<u8>, standing: &Standing, telling: Telling<'_>) {
        let Some((_, begin)) = self.standings.iter().find(|(name, _)| *name == standing.name) else { return };
        separate(out);
        out.extend_from_slice(begin);
        push_integer(out, standing.remaining);
        let window = match standing.outcome {
            Outcome::Allow | Outcome::Wait(_) => Some(standing.reset_after),
            Outcome::Refuse(_) | Outcome::Never => telling.retry(standing),
        };
        if let Some(window) = window {
            out.extend_from_slice(b";t=");
            push_integer(out, whole_seconds(window));
        }
        push_partition(out, telling.partition(standing));
    }
}

impl Style for Draft11 {
    /// Adds to the lists of an inner limiter.
    fn write(&self, telling: Telling<'_>, headers: &mut HeaderMap) {
        if let Some(policy) = self.policies.of(telling).filter(|_| is_free(headers, &RATE_LIMIT_POLICY)) {
            headers.append(RATE_LIMIT_POLICY, policy);
        }
        let mut standings = Vec::with_capacity(96);
        for standing in telling.heeded() {
            self.push_standing(&mut standings, standing, telling);
        }
        if let Some(standings) = value(standings).filter(|_| is_free(headers, &RATE_LIMIT)) {
            headers.append(RATE_LIMIT, standings);
        }
    }
}

/// Whether a field is empty or a list of this style. To what another draft has written nothing can be added: clients
/// would understand neither.
fn is_free(headers: &HeaderMap, name: &HeaderName) -> bool {
    headers.get(name).is_none_or(|line| line.as_bytes().starts_with(b"\""))
}

/// `"burst";q=20;w=2`
fn push_policy(out: &mut Vec<u8>, entry: &Entry<'_>) {
    push_string(out, entry.name.as_str());
    out.extend_from_slice(b";q=");
    push_integer(out, entry.quota.capacity());
    out.extend_from_slice(b";w=");
    push_integer(out, whole_seconds(entry.quota.horizon()).max(1));
    push_partition(out, entry.partition);
}

/// `;pk=:aGVsbG8gdGhlcmU=:`
fn push_partition(out: &mut Vec<u8>, partition: Option<&PartitionKey>) {
    if let Some(partition) = partition {
        out.extend_from_slice(b";pk=:");
        out.extend_from_slice(partition.as_bytes());
        out.push(b':');
    }
}
