//! Limit, remaining and reset in three fields, which tell of one limit only.

use http::header::{HeaderMap, HeaderName, HeaderValue};

use super::super::structured::integer;

/// The names of three such fields.
#[derive(Debug)]
pub(super) struct Triple {
    pub(super) limit: HeaderName,
    pub(super) remaining: HeaderName,
    pub(super) reset: HeaderName,
}

impl Triple {
    /// Whether the response says already, of an inner limiter, that this many units or fewer are left: its fields stay
    /// then. One of the three without the others is no limiter's word: it neither stays nor keeps ours away.
    pub(super) fn stays(&self, headers: &HeaderMap, remaining: u64) -> bool {
        let told = number(headers, &self.limit)
            .and(number(headers, &self.reset))
            .and_then(|_| number(headers, &self.remaining));
        told.is_some_and(|told| told <= remaining)
    }

    /// Replaces the three.
    pub(super) fn write(&self, headers: &mut HeaderMap, limit: HeaderValue, remaining: u64, reset: u64) {
        headers.insert(&self.limit, limit);
        headers.insert(&self.remaining, integer(remaining).into());
        headers.insert(&self.reset, integer(reset).into());
    }
}

/// The number that a field begins with: alone, or before a list of quotas.
pub(super) fn number(headers: &HeaderMap, name: &HeaderName) -> Option<u64> {
    let text = headers.get(name)?.to_str().ok()?;
    text.split(',').next()?.trim().parse().ok()
}
