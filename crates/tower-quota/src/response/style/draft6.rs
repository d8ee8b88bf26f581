use http::header::{HeaderMap, HeaderName};

use super::draft7::{add_policies, reset_secs};
use super::draft11::{has_fields, is_draft11};
use crate::response::report::HeaderReport;
use crate::response::text::{leading_number, number_value};
use crate::response::write_headers::WriteHeaders;

pub(super) struct Draft6;

const LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("ratelimit-reset");

impl WriteHeaders for Draft6 {
    fn fields(&self) -> &'static [HeaderName] {
        static FIELDS: [HeaderName; 4] = [
            HeaderName::from_static("ratelimit-policy"),
            LIMIT,
            REMAINING,
            RESET,
        ];
        &FIELDS
    }

    /// Keeps stricter or unreadable fields of an inner limiter.
    fn write(&self, report: &HeaderReport<'_>, headers: &mut HeaderMap) {
        let Some(limit) = report.tightest().filter(|_| !report.is_local()) else {
            return;
        };
        if has_fields(headers, is_draft11) {
            return;
        }
        add_policies(report, headers);
        if headers.contains_key(&REMAINING)
            && leading_number(headers, &REMAINING).is_none_or(|inner| inner <= limit.remaining())
        {
            return;
        }
        headers.insert(LIMIT, number_value(limit.capacity()));
        headers.insert(REMAINING, number_value(limit.remaining()));
        headers.insert(RESET, number_value(reset_secs(limit)));
    }
}
