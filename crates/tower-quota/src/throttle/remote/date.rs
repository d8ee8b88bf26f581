use std::time::{SystemTime, UNIX_EPOCH};

use http::HeaderMap;
use http::header::DATE;

/// Returns the time of the response by its `Date`, or else by the system's clock.
pub(super) fn response_time(headers: &HeaderMap) -> u64 {
    let sent = headers
        .get(DATE)
        .and_then(|date| parse(date.to_str().ok()?));
    #[expect(
        clippy::disallowed_methods,
        reason = "the remote sends a calendar date"
    )]
    sent.unwrap_or_else(|| epoch_second(SystemTime::now()))
}

pub(super) fn parse(date: &str) -> Option<u64> {
    httpdate::parse_http_date(date).ok().map(epoch_second)
}

fn epoch_second(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs()
}
