use core::time::Duration;

use http::HeaderMap;
use http::header::{AGE, RETRY_AFTER};

use super::date;
use super::retry_info::retry_delay;
use crate::cost::digits;
use crate::response::split_unquoted;

const MAX_VALUE_BYTES: usize = 1_024;

const MAX_LINES: usize = 8;

/// The smallest timestamp, of 2001. As a duration, the number would be 31 years.
const FIRST_TIMESTAMP: u64 = 1_000_000_000;

const RESOURCE_EXHAUSTED: u64 = 8;
const UNAVAILABLE: u64 = 14;

const PUSHBACK: &str = "grpc-retry-pushback-ms";

const PAIRS: [[&str; 2]; 3] = [
    ["ratelimit-remaining", "ratelimit-reset"],
    ["x-ratelimit-remaining", "x-ratelimit-reset"],
    ["x-rate-limit-remaining", "x-rate-limit-reset"],
];

pub(super) fn is_from_cache(headers: &HeaderMap) -> bool {
    lines(headers, AGE.as_str())
        .filter_map(digits)
        .any(|age| age > 0)
}

pub(super) fn is_grpc_error(headers: &HeaderMap) -> bool {
    grpc_status(headers).any(|code| code > 0)
}

pub(super) fn is_grpc_refusal(headers: &HeaderMap) -> bool {
    grpc_status(headers).any(|code| matches!(code, RESOURCE_EXHAUSTED | UNAVAILABLE))
}

fn grpc_status(headers: &HeaderMap) -> impl Iterator<Item = u64> {
    lines(headers, "grpc-status").filter_map(digits)
}

pub(super) fn asked(headers: &HeaderMap) -> Option<Duration> {
    // `Retry-After` is the exact wait, rounded up to whole seconds.
    let exact = grpc_pushback(headers).max(retry_delay(headers));
    exact.or_else(|| retry_after(headers))
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let until = |date: &str| Some(date::parse(date)?.saturating_sub(date::response_time(headers)));
    let seconds = lines(headers, RETRY_AFTER.as_str())
        .filter_map(|value| digits(value).or_else(|| until(value)));
    seconds.max().map(Duration::from_secs)
}

pub(super) fn forbids_retries(headers: &HeaderMap) -> bool {
    headers.contains_key(PUSHBACK) && grpc_pushback(headers).is_none()
}

fn grpc_pushback(headers: &HeaderMap) -> Option<Duration> {
    lines(headers, PUSHBACK)
        .filter_map(digits)
        .max()
        .map(Duration::from_millis)
}

pub(super) fn spent_quota(headers: &HeaderMap) -> Option<Duration> {
    let window = lines(headers, "ratelimit").filter_map(spent_window).max();
    let window = window.or_else(|| {
        PAIRS
            .iter()
            .find_map(|[remaining, reset]| spent_pair(headers, remaining, reset))
    });
    window.map(Duration::from_secs)
}

fn spent_pair(headers: &HeaderMap, remaining: &str, reset: &str) -> Option<u64> {
    if lines(headers, remaining)
        .map(digits)
        .any(|left| left != Some(0))
    {
        return None;
    }
    lines(headers, remaining).next()?;
    match lines(headers, reset).filter_map(digits).max()? {
        instant if instant >= FIRST_TIMESTAMP => {
            Some(instant.saturating_sub(date::response_time(headers)))
        }
        seconds => Some(seconds),
    }
}

fn spent_window(value: &str) -> Option<u64> {
    // `"minute";r=0;t=12` as of draft 8, `limit=100, remaining=0, reset=12` as of draft 7.
    let list = split_unquoted(value, ',')
        .filter_map(|member| window(split_unquoted(member, ';'), "r", "t"))
        .max();
    list.max(window(split_unquoted(value, ','), "remaining", "reset"))
}

fn window<'a>(pairs: impl Iterator<Item = &'a str>, left: &str, seconds: &str) -> Option<u64> {
    let (mut is_spent, mut length) = (false, None);
    for (name, number) in pairs.filter_map(|pair| pair.split_once('=')) {
        match name.trim() {
            name if name == left => is_spent = digits(number) == Some(0),
            name if name == seconds => length = digits(number),
            _ => {}
        }
    }
    length.filter(|_| is_spent)
}

fn lines<'a>(headers: &'a HeaderMap, name: &str) -> impl Iterator<Item = &'a str> {
    let values = headers.get_all(name).iter().take(MAX_LINES);
    values
        .filter(|value| value.len() <= MAX_VALUE_BYTES)
        .filter_map(|value| value.to_str().ok())
}
