//! Writes the fields of draft-ietf-httpapi-ratelimit-headers-11, which look the same since draft 8.

use http::header::{HeaderMap, HeaderName, HeaderValue};
use tower_quota_core::Name;

use crate::response::prepared::push_policy;
use crate::response::report::{HeaderReport, LimitReport};
use crate::response::text::{
    ceil_secs, field_text, members, push_integer, push_separator, push_string, remove_last_line,
    text_value,
};
use crate::response::write_headers::WriteHeaders;

// Names are constants, because a map takes a constant by value and has to clone a static.
pub(super) const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
pub(super) const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

pub(super) static FIELDS: [HeaderName; 2] = [RATE_LIMIT, RATE_LIMIT_POLICY];

pub(super) struct Draft11;

impl WriteHeaders for Draft11 {
    fn fields(&self) -> &'static [HeaderName] {
        &FIELDS
    }

    fn write(&self, report: &HeaderReport<'_>, headers: &mut HeaderMap) {
        // The figures of this instance would contradict the figures of the next one.
        if report.is_local() {
            return;
        }
        let mut list = field_text();
        for limit in report.binding_limits() {
            push_separator(&mut list);
            push_status(&mut list, &limit);
        }
        let Some(status) = text_value(&list) else {
            return;
        };
        let Some(policy) = policy(report) else {
            return;
        };
        let has_inner_status = headers.append(RATE_LIMIT, status);
        let has_inner_policy = headers.append(RATE_LIMIT_POLICY, policy);
        if has_inner_status || has_inner_policy {
            remove_last_line(headers, &RATE_LIMIT);
            remove_last_line(headers, &RATE_LIMIT_POLICY);
            add_to_inner_lists(report, headers);
        }
    }
}

fn policy(report: &HeaderReport<'_>) -> Option<HeaderValue> {
    if let Some(prepared) = report.prepared_policy() {
        // Copy the text. All cores would write the reference count of a shared text.
        return text_value(prepared);
    }
    let mut list = field_text();
    for limit in report.limits() {
        push_separator(&mut list);
        push_policy_of(&mut list, &limit);
    }
    text_value(&list)
}

/// Appends `"burst";r=19;t=2`.
fn push_status(out: &mut String, limit: &LimitReport<'_>) {
    push_string(out, limit.name().as_str());
    out.push_str(";r=");
    push_integer(out, limit.remaining());
    if let Some(window) = limit.effective_window() {
        out.push_str(";t=");
        push_integer(out, ceil_secs(window));
    }
}

fn push_policy_of(out: &mut String, limit: &LimitReport<'_>) {
    push_policy(out, limit.limit, limit.quota());
}

type Push = fn(&mut String, &LimitReport<'_>);

/// Extends the lists of an inner limiter, unless the inner limiter writes another draft.
///
/// If two limits share a name, the limit with fewer remaining units stays.
fn add_to_inner_lists(report: &HeaderReport<'_>, headers: &mut HeaderMap) {
    // A list or an answer of two drafts is invalid in both.
    if has_fields(headers, |line| !is_draft11(line)) {
        return;
    }
    let is_stricter = |limit: &LimitReport<'_>| {
        let inner = members(headers, &RATE_LIMIT).find(|member| is_named(member, limit.name()));
        inner.is_none_or(|inner| left(inner).is_some_and(|left| left > limit.remaining()))
    };
    let limits: Vec<LimitReport<'_>> = report.binding_limits().filter(is_stricter).collect();
    let fields: [(_, Push); 2] = [
        (RATE_LIMIT, push_status),
        (RATE_LIMIT_POLICY, push_policy_of),
    ];
    for (field, push) in fields {
        let mut list = field_text();
        for member in members(headers, &field) {
            if !limits.iter().any(|limit| is_named(member, limit.name())) {
                push_separator(&mut list);
                list.push_str(member);
            }
        }
        for limit in &limits {
            push_separator(&mut list);
            push(&mut list, limit);
        }
        if let Some(value) = text_value(&list) {
            headers.insert(field, value);
        }
    }
}

/// Returns whether a response has a `RateLimit` or `RateLimit-Policy` of this kind.
pub(super) fn has_fields(headers: &HeaderMap, is_kind: impl Fn(&HeaderValue) -> bool) -> bool {
    let mut fields = [RATE_LIMIT, RATE_LIMIT_POLICY].into_iter();
    fields.any(|field| headers.get(field).is_some_and(&is_kind))
}

/// Returns whether a list begins with the name of a policy, as from draft 8 on.
pub(super) fn is_draft11(line: &HeaderValue) -> bool {
    line.as_bytes().starts_with(b"\"")
}

fn is_named(member: &str, name: Name) -> bool {
    let mut quoted = field_text();
    push_string(&mut quoted, name.as_str());
    member
        .strip_prefix(quoted.as_str())
        .is_some_and(|rest| rest.is_empty() || rest.starts_with([';', ' ']))
}

fn left(member: &str) -> Option<u64> {
    let parameters = member.rsplit_once('"')?.1;
    parameters
        .split(';')
        .find_map(|parameter| parameter.trim().strip_prefix("r="))?
        .parse()
        .ok()
}
