use http::header::{HeaderMap, HeaderName, HeaderValue};
use smallvec::SmallVec;

use super::draft11::{FIELDS, RATE_LIMIT, RATE_LIMIT_POLICY, has_fields, is_draft11};
use crate::response::report::{HeaderReport, LimitReport};
use crate::response::text::{
    ceil_secs, field_text, members, push_integer, push_separator, text_value, window_secs,
};
use crate::response::write_headers::WriteHeaders;

pub(super) struct Draft7;

impl WriteHeaders for Draft7 {
    fn fields(&self) -> &'static [HeaderName] {
        &FIELDS
    }

    /// Writes the fields, but keeps a stricter or unreadable dictionary of an inner limiter.
    fn write(&self, report: &HeaderReport<'_>, headers: &mut HeaderMap) {
        let Some(limit) = report.tightest().filter(|_| !report.is_local()) else {
            return;
        };
        if has_fields(headers, is_draft11) {
            return;
        }
        add_policies(report, headers);
        let inner = headers.get(RATE_LIMIT).map(dictionary_remaining);
        if inner.is_some_and(|inner| inner.is_none_or(|inner| inner <= limit.remaining())) {
            return;
        }
        let mut dictionary = field_text();
        for (name, number) in [
            ("limit=", limit.capacity()),
            ("remaining=", limit.remaining()),
            ("reset=", reset_secs(limit)),
        ] {
            push_separator(&mut dictionary);
            dictionary.push_str(name);
            push_integer(&mut dictionary, number);
        }
        if let Some(value) = text_value(&dictionary) {
            headers.insert(RATE_LIMIT, value);
        }
    }
}

/// Returns the time to retry for a refusal, as drafts 6 and 7 require.
pub(super) fn reset_secs(limit: LimitReport<'_>) -> u64 {
    ceil_secs(limit.retry_after().unwrap_or_else(|| limit.reset_after()))
}

fn dictionary_remaining(line: &HeaderValue) -> Option<u64> {
    let members = line.to_str().ok()?.split(',').map(str::trim);
    members
        .filter_map(|member| member.strip_prefix("remaining="))
        .next_back()?
        .parse()
        .ok()
}

/// Extends an inner list such as `10;w=1`.
///
/// Clients find their policy by the quota. If two limits share a quota, the longer window stays.
pub(super) fn add_policies(report: &HeaderReport<'_>, headers: &mut HeaderMap) {
    let mut quotas: SmallVec<[(u64, u64); 4]> = SmallVec::new();
    for limit in report.limits() {
        let (capacity, window) = (limit.quota().capacity(), window_secs(limit.quota()));
        match quotas.iter_mut().find(|(other, _)| *other == capacity) {
            Some((_, longest)) => *longest = window.max(*longest),
            None => quotas.push((capacity, window)),
        }
    }
    let mut list = field_text();
    for (capacity, window) in quotas {
        let mut member = field_text();
        push_integer(&mut member, capacity);
        member.push_str(";w=");
        push_integer(&mut member, window);
        if !members(headers, &RATE_LIMIT_POLICY).any(|inner| inner == member) {
            push_separator(&mut list);
            list.push_str(&member);
        }
    }
    if let Some(value) = text_value(&list) {
        headers.append(RATE_LIMIT_POLICY, value);
    }
}
