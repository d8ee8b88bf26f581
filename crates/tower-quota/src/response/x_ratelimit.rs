//! The `X-RateLimit` styles: for the tightest limit, as in GitHub's API, and per window.

use core::time::Duration;

use http::header::{Entry, HeaderMap, HeaderName, HeaderValue};

use super::text::{leading_number, number_value, text_value};
use super::write_headers::{HeaderReport, LimitReport, WriteHeaders};

/// The unit and origin of `X-RateLimit-Reset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reset {
    /// Seconds from now.
    Delta,
    /// Seconds of the Unix epoch, on the clock of the store: Redis' own, or this process's for a memory store.
    Epoch,
}

/// The style with `X-RateLimit-Limit`, `-Remaining` and `-Reset`.
pub(super) struct XRateLimit(pub(super) Reset);

/// The style of GitHub's API: an epoch reset, the used units, and the limit's name.
pub(super) struct GitHub;

/// The style with one pair of fields per window, such as `X-RateLimit-Limit-Minute`.
///
/// The windows are a second, a minute, an hour and a day; the second field is `X-RateLimit-Remaining-Minute`.
pub(super) struct PerWindow;

static GITHUB_FIELDS: [HeaderName; 5] = [
    HeaderName::from_static("x-ratelimit-limit"),
    HeaderName::from_static("x-ratelimit-remaining"),
    HeaderName::from_static("x-ratelimit-reset"),
    HeaderName::from_static("x-ratelimit-used"),
    HeaderName::from_static("x-ratelimit-resource"),
];

/// The three fields that all limiters of this family write.
pub(super) static X_FIELDS: &[HeaderName] = GITHUB_FIELDS.split_at(3).0;
static COMPANIONS: &[HeaderName] = GITHUB_FIELDS.split_at(3).1;

/// The three `X-RateLimit` fields.
pub(super) static X: Triple = Triple {
    limit: &GITHUB_FIELDS[0],
    remaining: &GITHUB_FIELDS[1],
    reset: &GITHUB_FIELDS[2],
    companions: COMPANIONS,
};

/// The three fields that report one limit: limit, remaining and reset.
#[derive(Debug)]
pub(super) struct Triple {
    pub(super) limit: &'static HeaderName,
    pub(super) remaining: &'static HeaderName,
    pub(super) reset: &'static HeaderName,
    /// Further fields of the same limit.
    pub(super) companions: &'static [HeaderName],
}

impl WriteHeaders for XRateLimit {
    fn fields(&self) -> &'static [HeaderName] {
        X_FIELDS
    }

    fn write(&self, report: &HeaderReport<'_>, headers: &mut HeaderMap) {
        let Some(limit) = report.tightest() else {
            return X.write_uncounted(report, headers);
        };
        let reset = match self.0 {
            Reset::Delta => limit.reset_after_secs(),
            Reset::Epoch => limit.reset_at_secs(),
        };
        X.write(headers, limit.capacity_value(), limit.remaining(), reset);
    }
}

impl WriteHeaders for GitHub {
    fn fields(&self) -> &'static [HeaderName] {
        &GITHUB_FIELDS
    }

    fn write(&self, report: &HeaderReport<'_>, headers: &mut HeaderMap) {
        let Some(limit) = report.tightest() else {
            return X.write_uncounted(report, headers);
        };
        if !X.write(
            headers,
            limit.capacity_value(),
            limit.remaining(),
            limit.reset_at_secs(),
        ) {
            return;
        }
        let used = number_value(limit.capacity().saturating_sub(limit.remaining()));
        for (name, value) in COMPANIONS
            .iter()
            .zip([used, text_value(limit.name().as_str().as_bytes())])
        {
            if let Some(value) = value {
                headers.insert(name, value);
            }
        }
    }
}

impl Triple {
    /// Writes the three fields, unless those of an inner limiter are stricter. Returns whether it did.
    ///
    /// If not all three are there, they cannot be compared and are replaced. The further fields of an inner limiter are
    /// replaced together with its three.
    pub(super) fn write(
        &'static self,
        headers: &mut HeaderMap,
        limit: Option<HeaderValue>,
        remaining: u64,
        reset: u64,
    ) -> bool {
        let (Some(limit), Some(left), Some(reset)) =
            (limit, number_value(remaining), number_value(reset))
        else {
            return false;
        };
        if let Entry::Vacant(vacant) = headers.entry(self.limit) {
            vacant.insert(limit);
        } else if self
            .inner_remaining(headers)
            .is_some_and(|inner| inner <= remaining)
        {
            return false;
        } else {
            headers.insert(self.limit, limit);
            self.companions
                .iter()
                .for_each(|name| _ = headers.remove(name));
        }
        headers.insert(self.remaining, left);
        headers.insert(self.reset, reset);
        true
    }

    /// Writes that nothing was counted, if that is the case and no inner limiter counted.
    pub(super) fn write_uncounted(
        &'static self,
        report: &HeaderReport<'_>,
        headers: &mut HeaderMap,
    ) {
        if report.is_uncounted() {
            headers
                .entry(self.remaining)
                .or_insert(const { HeaderValue::from_static("-1") });
        }
    }

    /// Returns the units left that an inner limiter reports in these three fields.
    fn inner_remaining(&self, headers: &HeaderMap) -> Option<u64> {
        leading_number(headers, self.limit)?;
        leading_number(headers, self.reset)?;
        leading_number(headers, self.remaining)
    }
}

/// The windows that have their own fields.
const WINDOWS: [Duration; 4] = [
    Duration::from_secs(1),
    Duration::from_secs(60),
    Duration::from_secs(3_600),
    Duration::from_secs(86_400),
];

/// The fields for limit and remaining of each of these windows.
static WINDOW_FIELDS: [HeaderName; 8] = [
    HeaderName::from_static("x-ratelimit-limit-second"),
    HeaderName::from_static("x-ratelimit-remaining-second"),
    HeaderName::from_static("x-ratelimit-limit-minute"),
    HeaderName::from_static("x-ratelimit-remaining-minute"),
    HeaderName::from_static("x-ratelimit-limit-hour"),
    HeaderName::from_static("x-ratelimit-remaining-hour"),
    HeaderName::from_static("x-ratelimit-limit-day"),
    HeaderName::from_static("x-ratelimit-remaining-day"),
];

impl WriteHeaders for PerWindow {
    fn fields(&self) -> &'static [HeaderName] {
        &WINDOW_FIELDS
    }

    /// Writes the limits by window; of two with one window, the one with fewer units left.
    ///
    /// Limits of an inner limiter are included.
    fn write(&self, report: &HeaderReport<'_>, headers: &mut HeaderMap) {
        for limit in report.limits() {
            let Some((limit_field, remaining_field)) = window_fields(&limit) else {
                continue;
            };
            let inner = leading_number(headers, limit_field)
                .and_then(|_| leading_number(headers, remaining_field));
            if inner.is_some_and(|inner| inner <= limit.remaining()) {
                continue;
            }
            if let (Some(capacity), Some(left)) =
                (limit.capacity_value(), number_value(limit.remaining()))
            {
                headers.insert(limit_field, capacity);
                headers.insert(remaining_field, left);
            }
        }
    }
}

/// Returns the fields of a limit; `None` if its quota is of another window.
fn window_fields(limit: &LimitReport<'_>) -> Option<(&'static HeaderName, &'static HeaderName)> {
    let quota = limit.quota();
    // A bucket's rate may be rounded, and so is its window. If its capacity is the units of one period, that period is
    // its window.
    let window = if quota.capacity() == quota.units() {
        quota.period()
    } else {
        quota.window()
    };
    let position = WINDOWS.iter().position(|known| *known == window)?;
    match WINDOW_FIELDS.get(2 * position..)? {
        [limit, remaining, ..] => Some((limit, remaining)),
        _ => None,
    }
}
