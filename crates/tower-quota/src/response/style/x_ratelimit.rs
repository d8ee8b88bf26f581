use http::header::{HeaderMap, HeaderName, HeaderValue};

use crate::response::header_report::HeaderReport;
use crate::response::text::{ceil_secs, leading_number, number_value};
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

static FIELDS: [HeaderName; 3] = [
    HeaderName::from_static("x-ratelimit-limit"),
    HeaderName::from_static("x-ratelimit-remaining"),
    HeaderName::from_static("x-ratelimit-reset"),
];
static LIMIT: &HeaderName = &FIELDS[0];
static REMAINING: &HeaderName = &FIELDS[1];
static RESET: &HeaderName = &FIELDS[2];

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
        if inner_remaining(headers).is_some_and(|inner| inner <= limit.remaining()) {
            return;
        }
        let reset = match self.0 {
            Reset::Delta => ceil_secs(limit.reset_after()),
            Reset::Epoch => limit.reset_at_secs(),
        };
        headers.insert(LIMIT, number_value(limit.capacity()));
        headers.insert(REMAINING, number_value(limit.remaining()));
        headers.insert(RESET, number_value(reset));
    }
}

fn inner_remaining(headers: &HeaderMap) -> Option<u64> {
    leading_number(headers, LIMIT)?;
    leading_number(headers, RESET)?;
    leading_number(headers, REMAINING)
}
