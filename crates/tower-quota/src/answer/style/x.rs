//! `X-RateLimit-Limit`, `-Remaining` and `-Reset`, of the limit that binds.

use http::header::{HeaderMap, HeaderValue};
use tower_quota_core::LimitStatus;

use super::super::seconds::whole_seconds;
use super::super::sheet::{Piece, Sheet};
use super::super::structured::integer;
use super::super::telling::Telling;
use super::names::{X, X_RESOURCE, X_USED};
use super::{Reset, Style};
use crate::limit::Limit;

#[derive(Debug)]
pub(super) struct XRateLimit {
    reset: Reset,
    /// What the first field says of each limit, by its number and capacity.
    limits: Vec<(u32, u64, HeaderValue)>,
}

impl XRateLimit {
    pub(super) fn new(reset: Reset, limits: &[Limit]) -> Self {
        let of = |limit: &Limit| {
            let capacity = limit.quota.capacity();
            (limit.name.id(), capacity, integer(capacity).into())
        };
        Self { reset, limits: limits.iter().map(of).collect() }
    }
}

impl Style for XRateLimit {
    fn write<'a>(&'a self, telling: Telling<'_>, headers: &mut HeaderMap, sheet: &mut Sheet<'a>) {
        let Some(binding) = telling.binding() else { return };
        if gives_way(telling, headers, binding) {
            return;
        }
        let reset = self.reset.of(telling, binding);
        let known = |(id, capacity, _): &&(u32, u64, _)| *id == binding.name.id() && *capacity == binding.limit;
        match self.limits.iter().find(known) {
            Some((.., limit)) => X.write_constant(sheet, limit, binding.remaining(), reset),
            // A request's own quota, or an instance's share.
            None => {
                let limit = sheet.digits(binding.limit);
                X.write(sheet, limit, binding.remaining(), reset);
            }
        }
    }

    fn write_local<'a>(&'a self, telling: Telling<'_>, headers: &mut HeaderMap, sheet: &mut Sheet<'a>) {
        self.write(telling, headers, sheet);
    }

    fn write_uncounted(&self, headers: &mut HeaderMap) {
        write_uncounted(headers);
    }
}

impl Reset {
    /// The number that tells when a limit is whole again.
    pub(super) fn of(self, telling: Telling<'_>, standing: &LimitStatus) -> u64 {
        match self {
            Self::Delta => whole_seconds(telling.reset(standing)),
            Self::Epoch => telling.reset_second(standing),
        }
    }
}

/// Writes the three, unless an inner limiter's are stricter, and says whether they are ours now.
pub(super) fn write(
    telling: Telling<'_>,
    headers: &mut HeaderMap,
    sheet: &mut Sheet<'_>,
    limit: Piece,
    binding: &LimitStatus,
    reset: u64,
) -> bool {
    if gives_way(telling, headers, binding) {
        return false;
    }
    X.write(sheet, limit, binding.remaining(), reset);
    true
}

/// Whether an inner limiter's three are stricter. Where they are not, what it told more of its own limit is not true of
/// ours, and goes.
fn gives_way(telling: Telling<'_>, headers: &mut HeaderMap, binding: &LimitStatus) -> bool {
    if telling.is_first {
        return false;
    }
    let gives_way = X.stays(headers, binding.remaining());
    if !gives_way {
        headers.remove(&X_USED);
        headers.remove(&X_RESOURCE);
    }
    gives_way
}

/// Says that nothing was counted, unless an inner limiter has.
pub(super) fn write_uncounted(headers: &mut HeaderMap) {
    headers.entry(&X.remaining).or_insert(const { HeaderValue::from_static("-1") });
}
