//! `X-RateLimit-Limit-Minute` and `X-RateLimit-Remaining-Minute`, and the same per second, hour and day.

use core::time::Duration;

use http::header::{HeaderMap, HeaderName};
use tower_quota_core::{LimitStatus, Name, Quota};

use super::super::sheet::Sheet;
use super::super::structured::integer;
use super::super::telling::Telling;
use super::Style;
use super::triple::number;
use crate::limit::Limit;

/// The windows that have fields, and their fields: limit and remaining.
pub(super) static WINDOWS: [(Duration, [HeaderName; 2]); 4] = [
    (
        Duration::from_secs(1),
        [HeaderName::from_static("x-ratelimit-limit-second"), HeaderName::from_static("x-ratelimit-remaining-second")],
    ),
    (
        Duration::from_secs(60),
        [HeaderName::from_static("x-ratelimit-limit-minute"), HeaderName::from_static("x-ratelimit-remaining-minute")],
    ),
    (
        Duration::from_secs(3_600),
        [HeaderName::from_static("x-ratelimit-limit-hour"), HeaderName::from_static("x-ratelimit-remaining-hour")],
    ),
    (
        Duration::from_secs(86_400),
        [HeaderName::from_static("x-ratelimit-limit-day"), HeaderName::from_static("x-ratelimit-remaining-day")],
    ),
];

#[derive(Debug)]
pub(super) struct PerWindow {
    limits: Vec<(Name, Quota)>,
}

impl PerWindow {
    pub(super) fn new(limits: &[Limit]) -> Self {
        Self { limits: limits.iter().map(|limit| (limit.name, limit.quota)).collect() }
    }

    /// The fields of a limit; `None` when its quota is of another window.
    fn fields(&self, telling: Telling<'_>, standing: &LimitStatus) -> Option<&'static [HeaderName; 2]> {
        let (_, own) = self.limits.iter().find(|(name, _)| *name == standing.name)?;
        let window = window(telling.quota(standing, own));
        WINDOWS.iter().find(|(length, _)| *length == window).map(|(_, fields)| fields)
    }
}

impl Style for PerWindow {
    /// Of two limits of one window, be it an inner limiter's, the one with less left is told.
    fn write<'a>(&'a self, telling: Telling<'_>, headers: &mut HeaderMap, _: &mut Sheet<'a>) {
        for standing in telling.statuses() {
            let Some([limit, remaining]) = self.fields(telling, standing) else { continue };
            let told = number(headers, limit).and_then(|_| number(headers, remaining));
            if told.is_none_or(|told| told > standing.remaining()) {
                headers.insert(limit, integer(standing.limit).into());
                headers.insert(remaining, integer(standing.remaining()).into());
            }
        }
    }

    fn write_local<'a>(&'a self, telling: Telling<'_>, headers: &mut HeaderMap, sheet: &mut Sheet<'a>) {
        self.write(telling, headers, sheet);
    }
}

/// The span over which a quota's capacity is the quota. A bucket's rate may have been rounded, and its horizon with it;
/// one that holds just a period's units is of that period.
fn window(quota: &Quota) -> Duration {
    if quota.capacity() == quota.units() { quota.period() } else { quota.horizon() }
}
