//! `X-RateLimit-Limit`, `-Remaining` and `-Reset`, of the limit that binds.

use http::header::{HeaderMap, HeaderValue};
use tollgate_core::Standing;

use super::super::seconds::whole_seconds;
use super::super::structured::integer;
use super::super::telling::Telling;
use super::names::{X, X_RESOURCE, X_USED};
use super::{Reset, Style};

#[derive(Debug)]
pub(super) struct XRateLimit(pub(super) Reset);

impl Style for XRateLimit {
    fn write(&self, telling: Telling<'_>, headers: &mut HeaderMap) {
        if let Some(binding) = telling.binding() {
            let reset = self.0.of(telling, binding);
            write(headers, integer(binding.limit).into(), binding, reset);
        }
    }

    fn write_local(&self, telling: Telling<'_>, headers: &mut HeaderMap) {
        self.write(telling, headers);
    }

    fn write_uncounted(&self, headers: &mut HeaderMap) {
        write_uncounted(headers);
    }
}

impl Reset {
    /// The number that tells when a limit is whole again.
    pub(super) fn of(self, telling: Telling<'_>, standing: &Standing) -> u64 {
        match self {
            Self::Delta => whole_seconds(telling.reset(standing)),
            Self::Epoch => telling.reset_second(standing),
        }
    }
}

/// Writes the three, unless an inner limiter's are stricter, and says whether they are ours now.
pub(super) fn write(headers: &mut HeaderMap, limit: HeaderValue, binding: &Standing, reset: u64) -> bool {
    if X.stays(headers, binding.remaining) {
        return false;
    }
    X.write(headers, limit, binding.remaining, reset);
    // Where an inner limiter told more of its own limit, that is not true of ours.
    headers.remove(X_USED);
    headers.remove(X_RESOURCE);
    true
}

/// Says that nothing was counted, unless an inner limiter has.
pub(super) fn write_uncounted(headers: &mut HeaderMap) {
    headers.entry(&X.remaining).or_insert(const { HeaderValue::from_static("-1") });
}
