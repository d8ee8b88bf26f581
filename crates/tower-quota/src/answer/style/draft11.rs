//! `RateLimit` and `RateLimit-Policy` of draft-ietf-httpapi-ratelimit-headers-11, on the wire since draft 8.
//!
//! On an admitted request `t` is the time until the limit is whole again: a client who spreads its `r` units over `t`
//! seconds is always admitted, since they are there already. On a refusal `t` is the time after which the request would
//! be admitted, which is what the refused client needs, and never later than `Retry-After`.

use core::time::Duration;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use tower_quota_core::{LimitStatus, Outcome};

use super::super::partition::PartitionKey;
use super::super::seconds::whole_seconds;
use super::super::sheet::Sheet;
use super::super::structured::{integer, push_integer, push_string};
use super::super::telling::Telling;
use super::super::text::Text;
use super::Style;
use super::names::{RATE_LIMIT, RATE_LIMIT_POLICY};
use super::policies::{Dialect, Entry, Policies};
use crate::limit::Limit;

#[derive(Debug)]
pub(super) struct Draft11 {
    policies: Policies,
    standings: Statuses,
}

impl Draft11 {
    pub(super) fn new(limits: &[Limit]) -> Self {
        Self { policies: policies(limits), standings: Statuses::new(limits) }
    }

    /// Adds a member to the list that begins at this place of the text.
    fn push_standing(&self, sheet: &mut Sheet<'_>, list: usize, standing: &LimitStatus, telling: Telling<'_>) {
        // Within a policy no two limits share a number.
        let Some(own) = self.standings.iter().find(|own| own.is_of(standing)) else { return };
        own.write(standing, telling.retry(standing), list, sheet.out());
        if let Some(partition) = telling.partition(standing) {
            sheet.out().extend(PARTITION);
            sheet.out().extend(partition.as_bytes());
            sheet.out().extend(b":");
        }
    }
}

/// How the standings of limits are told.
#[derive(Debug)]
pub(in crate::answer) struct Statuses(Vec<Begin>);

/// `"burst";r=`, and the number of the name.
#[derive(Debug)]
pub(in crate::answer) struct Begin {
    id: u32,
    text: Vec<u8>,
}

impl Statuses {
    pub(in crate::answer) fn new(limits: &[Limit]) -> Self {
        let begin = |limit: &Limit| {
            let mut text = Vec::new();
            push_string(&mut text, limit.name.as_str());
            text.extend_from_slice(b";r=");
            Begin { id: limit.name.id(), text }
        };
        Self(limits.iter().map(begin).collect())
    }

    #[inline]
    pub(in crate::answer) fn iter(&self) -> impl Iterator<Item = &Begin> {
        self.0.iter()
    }
}

impl Begin {
    /// Whether it is this limit that stands so.
    #[inline]
    pub(in crate::answer) const fn is_of(&self, standing: &LimitStatus) -> bool {
        self.id == standing.name.id()
    }

    /// Writes a member of the list that begins at this place of the text: `"burst";r=19;t=1`. A limit that refuses would
    /// admit the request after `retry`, if ever.
    #[inline]
    pub(in crate::answer) fn write(
        &self,
        standing: &LimitStatus,
        retry: Option<Duration>,
        list: usize,
        out: &mut Text,
    ) {
        if out.len() > list {
            out.extend(b", ");
        }
        out.extend(&self.text);
        out.number(integer(standing.remaining()));
        let window = match standing.outcome {
            Outcome::Allow | Outcome::Wait(_) => Some(standing.reset_after()),
            Outcome::Refuse(_) | Outcome::Never => retry,
        };
        if let Some(window) = window {
            out.extend(b";t=");
            out.number(integer(whole_seconds(window)));
        }
    }
}

/// `RateLimit-Policy` where all limits apply, each with its own quota; `None` when there are none.
pub(in crate::answer) fn policy(limits: &[Limit]) -> Option<HeaderValue> {
    policies(limits).always().cloned()
}

fn policies(limits: &[Limit]) -> Policies {
    Policies::new(limits, Dialect { member: push_policy, tells: |_, _| true })
}

impl Style for Draft11 {
    /// Adds to the lists of an inner limiter.
    fn write<'a>(&'a self, telling: Telling<'_>, headers: &mut HeaderMap, sheet: &mut Sheet<'a>) {
        if is_free(telling, headers, &RATE_LIMIT_POLICY) {
            if let Some(policy) = self.policies.whole(telling) {
                sheet.add_constant(&RATE_LIMIT_POLICY, policy);
            } else if let Some(policy) = self.policies.of(telling) {
                let begin = sheet.here();
                sheet.out().extend(policy.as_bytes());
                let policy = sheet.since(begin);
                sheet.add_text(&RATE_LIMIT_POLICY, policy);
            }
        }
        if is_free(telling, headers, &RATE_LIMIT) {
            let begin = sheet.here();
            telling.heeded().for_each(|standing| self.push_standing(sheet, begin, standing, telling));
            let list = sheet.since(begin);
            if !list.is_empty() {
                sheet.add_text(&RATE_LIMIT, list);
            }
        }
    }
}

/// Whether a field is empty or a list of this style. To what another draft has written nothing can be added: clients
/// would understand neither.
fn is_free(telling: Telling<'_>, headers: &HeaderMap, name: &HeaderName) -> bool {
    telling.is_first || headers.get(name).is_none_or(|line| line.as_bytes().starts_with(b"\""))
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

const PARTITION: &[u8] = b";pk=:";

/// `;pk=:aGVsbG8gdGhlcmU=:`
fn push_partition(out: &mut Vec<u8>, partition: Option<&PartitionKey>) {
    if let Some(partition) = partition {
        out.extend_from_slice(PARTITION);
        out.extend_from_slice(partition.as_bytes());
        out.push(b':');
    }
}
