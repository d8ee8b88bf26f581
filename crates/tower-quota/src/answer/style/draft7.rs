//! `RateLimit` and `RateLimit-Policy` of draft-ietf-httpapi-ratelimit-headers-07: a Dictionary of limit, remaining and
//! reset, and quotas without names.

use http::header::{HeaderMap, HeaderValue};

use super::super::seconds::whole_seconds;
use super::super::sheet::Sheet;
use super::super::telling::Telling;
use super::names::RATE_LIMIT;
use super::policies::Policies;
use super::{Style, unnamed};
use crate::limit::Limit;

#[derive(Debug)]
pub(super) struct Draft7 {
    policies: Policies,
}

impl Draft7 {
    pub(super) fn new(limits: &[Limit]) -> Self {
        Self { policies: Policies::new(limits, unnamed::UNNAMED) }
    }
}

impl Style for Draft7 {
    /// The stricter dictionary of ours and an inner limiter's stays, and whatever it cannot be compared with.
    fn write<'a>(&'a self, telling: Telling<'_>, headers: &mut HeaderMap, sheet: &mut Sheet<'a>) {
        if let Some(policy) = self.policies.of(telling) {
            unnamed::append(headers, policy);
        }
        let Some(binding) = telling.binding() else { return };
        if headers.get(&RATE_LIMIT).is_some_and(|told| remaining(told).is_none_or(|told| told <= binding.remaining())) {
            return;
        }
        let reset = telling.retry(binding).unwrap_or(binding.reset_after());
        let begin = sheet.here();
        sheet.out().extend(b"limit=");
        sheet.integer(binding.limit);
        sheet.out().extend(b", remaining=");
        sheet.integer(binding.remaining());
        sheet.out().extend(b", reset=");
        sheet.integer(whole_seconds(reset));
        let dictionary = sheet.since(begin);
        sheet.text(&RATE_LIMIT, dictionary);
    }
}

/// What such a dictionary says is left.
fn remaining(told: &HeaderValue) -> Option<u64> {
    let members = told.to_str().ok()?.split(',').map(str::trim);
    members.filter_map(|member| member.strip_prefix("remaining=")).next_back()?.parse().ok()
}
