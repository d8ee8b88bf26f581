//! Dates of HTTP (RFC 9110, section 5.6.7), in the three forms that a recipient must accept.

use std::time::{SystemTime, UNIX_EPOCH};

use http::HeaderMap;
use http::header::DATE;

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// Returns the time of a response in seconds since the Unix epoch, from its `Date` if it has one.
pub(super) fn response_time(headers: &HeaderMap) -> u64 {
    let sent = headers
        .get(DATE)
        .and_then(|date| parse(date.to_str().ok()?));
    #[expect(
        clippy::disallowed_methods,
        reason = "the remote sends a calendar date"
    )]
    sent.unwrap_or_else(|| {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_secs()
    })
}

/// Returns the seconds from the Unix epoch to a date.
pub(super) fn parse(text: &str) -> Option<u64> {
    if text.len() > 40 {
        return None;
    }
    let parts: Vec<&str> = text
        .split([' ', ',', '-', ':'])
        .filter(|part| !part.is_empty())
        .collect();
    let (day, month, year, time) = match parts[..] {
        // Sun, 06 Nov 1994 08:49:37 GMT, and Sunday, 06-Nov-94 08:49:37 GMT
        [_, day, month, year, hour, minute, second, "GMT"] => {
            (day, month, year, [hour, minute, second])
        }
        // Sun Nov  6 08:49:37 1994
        [_, month, day, hour, minute, second, year] => (day, month, year, [hour, minute, second]),
        _ => return None,
    };
    let number = |digits: &str| -> Option<u64> {
        let are_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
        if are_digits && digits.len() <= 4 {
            digits.parse().ok()
        } else {
            None
        }
    };
    let month = 1 + MONTHS.iter().position(|name| *name == month)? as u64;
    let (day, [hour, minute, second]) = (number(day)?, time.map(number));
    let (hour, minute, second) = (hour?, minute?, second?);
    let year = match (year.len(), number(year)?) {
        (2, year) if year < 70 => 2_000 + year,
        (2, year) => 1_900 + year,
        (_, year) => year,
    };
    if year < 1970 || !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    Some(days_since_epoch(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second)
}

/// Returns the days from 1970-01-01 to a date of the Gregorian calendar, from 1970 on.
const fn days_since_epoch(year: u64, month: u64, day: u64) -> u64 {
    // Years begin in March, so that a leap day is the last of its year (Howard Hinnant, "days_from_civil").
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    year * 365 + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468
}
