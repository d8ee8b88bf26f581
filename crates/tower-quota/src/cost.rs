//! Cost functions for [`Limit::cost_with`](crate::Limit::cost_with).
//!
//! By default, a request costs 1 unit. If only the response shows the cost, charge an estimate and
//! [settle](crate::settle) later.
//!
//! ```
//! use tower_quota::{Limit, Quota, cost, key};
//!
//! // Uploads pay one unit per megabyte; uploads of unknown length pay for ten.
//! let megabytes = Limit::new("megabytes", Quota::per_hour(1_000))
//!     .by(key::header("x-api-key"))
//!     .cost_with(cost::body_size(1_000_000, 10));
//! # let _ = megabytes;
//! ```
//!
//! Customised by a closure on the [head](crate::RequestHead):
//!
//! ```
//! use tower_quota::{Limit, Quota, key};
//!
//! let units = Limit::new("units", Quota::per_minute(100))
//!     .by(key::header("x-api-key"))
//!     .cost_with(|head| if head.path() == "/search" { 10 } else { 1 });
//! # let _ = units;
//! ```
//!
//! A cost of 0 is free. A cost above the capacity is always refused.

use http::HeaderMap;
use http::header::{CONTENT_LENGTH, HeaderName, InvalidHeaderName, TRANSFER_ENCODING};

use crate::head::RequestHead;
use crate::valid::valid_header;

/// Charges the number in a request header.
///
/// The cost is `default` if the header is absent, conflicting, or not a non-negative integer, and
/// saturates at 64 bits.
///
/// Use a header that a trusted proxy sets or removes.
///
/// # Panics
/// Panics if `name` is invalid.
#[track_caller]
pub fn header(name: &str, default: u64) -> impl Fn(&RequestHead<'_>) -> u64 + Send + Sync + use<> {
    header_named(valid_header(name), default)
}

/// Works like [`header`], but never panics.
///
/// # Errors
/// Returns an error if `name` is invalid.
pub fn try_header(
    name: &str,
    default: u64,
) -> Result<impl Fn(&RequestHead<'_>) -> u64 + Send + Sync + use<>, InvalidHeaderName> {
    Ok(header_named(
        HeaderName::from_bytes(name.as_bytes())?,
        default,
    ))
}

fn header_named(name: HeaderName, default: u64) -> impl Fn(&RequestHead<'_>) -> u64 + Send + Sync {
    move |head: &RequestHead<'_>| number_in(head.headers(), &name).unwrap_or(default)
}

/// Charges `Content-Length` in units of `bytes_per_unit` bytes (0 counts as 1).
///
/// The cost is rounded up, to at least 1. For an unknown length the cost is `default`, so pass the
/// cost of your longest body.
pub fn body_size(
    bytes_per_unit: u64,
    default: u64,
) -> impl Fn(&RequestHead<'_>) -> u64 + Send + Sync {
    let bytes_per_unit = bytes_per_unit.max(1);
    move |head: &RequestHead<'_>| match number_in(head.headers(), &CONTENT_LENGTH) {
        // Chunked bodies are read in full, whatever the announced length.
        Some(bytes) if !head.headers().contains_key(TRANSFER_ENCODING) => {
            bytes.div_ceil(bytes_per_unit).max(1)
        }
        _ => default,
    }
}

/// Returns the number in a header, if all lines with this name agree.
pub(crate) fn number_in(headers: &HeaderMap, name: &HeaderName) -> Option<u64> {
    let mut lines = headers.get_all(name).iter();
    let first = lines.next()?;
    if lines.any(|another| another != first) {
        return None;
    }
    digits(first.to_str().ok()?)
}

/// Parses a number without a sign. Larger numbers saturate at 64 bits.
pub(crate) fn digits(text: &str) -> Option<u64> {
    let text = text.trim_ascii();
    let are_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    are_digits.then(|| text.parse().unwrap_or(u64::MAX))
}
