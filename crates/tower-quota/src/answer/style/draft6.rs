//! `RateLimit-Limit`, `-Remaining`, `-Reset` and `-Policy` of draft-ietf-httpapi-ratelimit-headers-06.

use http::header::HeaderMap;

use super::super::seconds::whole_seconds;
use super::super::sheet::Sheet;
use super::super::telling::Telling;
use super::names::DRAFT;
use super::policies::Policies;
use super::{Style, unnamed};
use crate::limit::Limit;

#[derive(Debug)]
pub(super) struct Draft6 {
    policies: Policies,
}

impl Draft6 {
    pub(super) fn new(limits: &[Limit]) -> Self {
        Self { policies: Policies::new(limits, unnamed::UNNAMED) }
    }
}

impl Style for Draft6 {
    /// The stricter three of ours and an inner limiter's stay.
    fn write<'a>(&'a self, telling: Telling<'_>, headers: &mut HeaderMap, sheet: &mut Sheet<'a>) {
        if let Some(policy) = self.policies.of(telling) {
            unnamed::append(headers, policy);
        }
        let Some(binding) = telling.binding() else { return };
        if telling.is_first || !DRAFT.stays(headers, binding.remaining()) {
            // The draft wants it equal to Retry-After, where there is one.
            let reset = whole_seconds(telling.retry(binding).unwrap_or(binding.reset_after()));
            let limit = sheet.digits(binding.limit);
            DRAFT.write(sheet, limit, binding.remaining(), reset);
        }
    }
}
