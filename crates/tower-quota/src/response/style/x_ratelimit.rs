use http::header::{HeaderMap, HeaderName, HeaderValue};

use crate::response::report::HeaderReport;
use crate::response::text::{ceil_secs, leading_number, number_value, remove_last_line};
use crate::response::write_headers::WriteHeaders;

/// The unit and origin of `X-RateLimit-Reset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reset {
    /// Seconds from now.
    Delta,
    /// Seconds of the Unix epoch, by the clock of the store.
    Epoch,
}

pub(super) struct XRateLimit(pub(super) Reset);

const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

static FIELDS: [HeaderName; 3] = [LIMIT, REMAINING, RESET];

impl WriteHeaders for XRateLimit {
    fn fields(&self) -> &'static [HeaderName] {
        &FIELDS
    }

    /// Writes the fields, but keeps complete and stricter fields of an inner limiter.
    fn write(&self, report: &HeaderReport<'_>, headers: &mut HeaderMap) {
        let Some(limit) = report.tightest() else {
            if report.is_uncounted() {
                headers
                    .entry(REMAINING)
                    .or_insert(const { HeaderValue::from_static("-1") });
            }
            return;
        };
        let remaining = limit.remaining();
        let reset = match self.0 {
            Reset::Delta => ceil_secs(limit.reset_after()),
            Reset::Epoch => limit.reset_at_secs(),
        };
        if headers.append(LIMIT, number_value(limit.capacity())) {
            remove_last_line(headers, &LIMIT);
            if inner_remaining(headers).is_some_and(|inner| inner <= remaining) {
                return;
            }
            headers.insert(LIMIT, number_value(limit.capacity()));
        }
        headers.insert(REMAINING, number_value(remaining));
        headers.insert(RESET, number_value(reset));
    }
}

fn inner_remaining(headers: &HeaderMap) -> Option<u64> {
    leading_number(headers, &LIMIT)?;
    leading_number(headers, &RESET)?;
    leading_number(headers, &REMAINING)
}
