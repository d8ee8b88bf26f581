//! Drafts 3, 6 and 7 of the `RateLimit` fields, whose formats differ.

use core::cmp::Reverse;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use smallvec::SmallVec;
use tower_quota_core::Quota;

use super::draft11;
use super::text::{
    FieldText, ceil_secs, members, push_integer, push_separator, push_string, text_value,
};
use super::write_headers::{HeaderReport, LimitReport, WriteHeaders};
use super::x_ratelimit::{Triple, X, X_FIELDS};

/// The style of draft 7: `RateLimit` as a Dictionary, and `RateLimit-Policy` without names.
pub(super) struct Draft7;

/// The style of draft 6: `RateLimit-Limit`, `-Remaining`, `-Reset`, and `RateLimit-Policy`.
pub(super) struct Draft6;

/// The style of draft 3 with the prefix `X-`, as Envoy's `DRAFT_VERSION_03`.
///
/// It reports the tightest limit, followed by all quotas.
pub(super) struct Draft3;

static RATE_LIMIT: &HeaderName = &draft11::FIELDS[0];
static RATE_LIMIT_POLICY: &HeaderName = &draft11::FIELDS[1];

static DRAFT6_FIELDS: [HeaderName; 4] = [
    HeaderName::from_static("ratelimit-limit"),
    HeaderName::from_static("ratelimit-remaining"),
    HeaderName::from_static("ratelimit-reset"),
    HeaderName::from_static("ratelimit-policy"),
];

static DRAFT6: Triple = Triple {
    limit: &DRAFT6_FIELDS[0],
    remaining: &DRAFT6_FIELDS[1],
    reset: &DRAFT6_FIELDS[2],
    companions: &[],
};

impl WriteHeaders for Draft7 {
    fn fields(&self) -> &'static [HeaderName] {
        &draft11::FIELDS
    }

    /// Writes the stricter dictionary of ours and an inner limiter's.
    ///
    /// A value that cannot be compared is kept.
    fn write(&self, report: &HeaderReport<'_>, headers: &mut HeaderMap) {
        let Some(limit) = report.tightest().filter(|_| !report.is_local()) else {
            return;
        };
        add_unnamed_policies(report, headers);
        let inner = headers.get(RATE_LIMIT).map(dictionary_remaining);
        if inner.is_some_and(|inner| inner.is_none_or(|inner| inner <= limit.remaining())) {
            return;
        }
        let mut dictionary = FieldText::new();
        for (name, number) in [
            ("limit=", limit.capacity()),
            ("remaining=", limit.remaining()),
            ("reset=", draft_reset(&limit)),
        ] {
            push_separator(&mut dictionary);
            dictionary.extend_from_slice(name.as_bytes());
            push_integer(&mut dictionary, number);
        }
        if let Some(value) = text_value(&dictionary) {
            headers.insert(RATE_LIMIT, value);
        }
    }
}

impl WriteHeaders for Draft6 {
    fn fields(&self) -> &'static [HeaderName] {
        &DRAFT6_FIELDS
    }

    fn write(&self, report: &HeaderReport<'_>, headers: &mut HeaderMap) {
        let Some(limit) = report.tightest().filter(|_| !report.is_local()) else {
            return;
        };
        add_unnamed_policies(report, headers);
        DRAFT6.write(
            headers,
            limit.capacity_value(),
            limit.remaining(),
            draft_reset(&limit),
        );
    }
}

impl WriteHeaders for Draft3 {
    fn fields(&self) -> &'static [HeaderName] {
        X_FIELDS
    }

    fn write(&self, report: &HeaderReport<'_>, headers: &mut HeaderMap) {
        let Some(limit) = report.tightest() else {
            return X.write_uncounted(report, headers);
        };
        let mut list = FieldText::new();
        push_integer(&mut list, limit.capacity());
        // A local decision does not use the full quotas.
        for limit in report.limits().filter(|_| !report.is_local()) {
            push_separator(&mut list);
            push_quota(&mut list, limit.quota());
            list.extend_from_slice(b";name=");
            push_string(&mut list, limit.name().as_str());
        }
        X.write(
            headers,
            text_value(&list),
            limit.remaining(),
            limit.reset_after_secs(),
        );
    }
}

/// Returns the seconds until the limit is full.
///
/// For a refusal they are those of `Retry-After`, as drafts 6 and 7 require.
fn draft_reset(limit: &LimitReport<'_>) -> u64 {
    ceil_secs(limit.retry_after().unwrap_or_else(|| limit.reset_after()))
}

/// Returns the remaining units in a dictionary of draft 7.
fn dictionary_remaining(line: &HeaderValue) -> Option<u64> {
    let members = line.to_str().ok()?.split(',').map(str::trim);
    members
        .filter_map(|member| member.strip_prefix("remaining="))
        .next_back()?
        .parse()
        .ok()
}

/// Appends `20;w=2`.
fn push_quota(out: &mut FieldText, quota: &Quota) {
    push_integer(out, quota.capacity());
    out.extend_from_slice(b";w=");
    push_integer(out, window_secs(quota));
}

fn window_secs(quota: &Quota) -> u64 {
    ceil_secs(quota.window()).max(1)
}

/// Adds quotas without names to those of an inner limiter: `10;w=1, 1000;w=3600`.
///
/// Clients find their policy by the quota, so no two may have the same (draft 6, section 2.1). Of those with the same
/// quota, the one with the longest window is kept, which is the strictest. Nothing is added to the names of draft 11.
fn add_unnamed_policies(report: &HeaderReport<'_>, headers: &mut HeaderMap) {
    let is_other_draft =
        |line: &HeaderValue| !line.as_bytes().first().is_some_and(u8::is_ascii_digit);
    if headers.get(RATE_LIMIT_POLICY).is_some_and(is_other_draft) {
        return;
    }
    let quotas: SmallVec<[&Quota; 4]> = report.limits().map(|limit| limit.quota()).collect();
    let mut list = FieldText::new();
    for (position, quota) in quotas.iter().enumerate() {
        let rank = |(at, rival): (usize, &&Quota)| (window_secs(rival), Reverse(at));
        let rivals = quotas
            .iter()
            .enumerate()
            .filter(|(_, rival)| rival.capacity() == quota.capacity());
        if rivals.map(rank).max() != Some(rank((position, quota))) {
            continue;
        }
        let mut member = FieldText::new();
        push_quota(&mut member, quota);
        if !members(headers, RATE_LIMIT_POLICY).any(|inner| inner.as_bytes() == &member[..]) {
            push_separator(&mut list);
            list.extend_from_slice(&member);
        }
    }
    if let Some(value) = text_value(&list) {
        headers.append(RATE_LIMIT_POLICY, value);
    }
}
