//! Costs of requests: functions for [`Limit::cost_with`](crate::Limit::cost_with), which takes closures too.
//!
//! A cost is the number of units that a request takes before its handler runs, 1 by default. If only the handler or the
//! response knows the cost, charge an estimate and [settle](crate::settle) it.
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
//! Customised: a closure on the request's [head](crate::RequestHead):
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
//! # Caveats
//!
//! A cost of 0 is free. A cost above the quota's capacity is never admitted.

use http::HeaderMap;
use http::header::{CONTENT_LENGTH, HeaderName, InvalidHeaderName, TRANSFER_ENCODING};

use crate::head::RequestHead;
use crate::valid::valid_header;

/// Charges the number in a header of the request.
///
/// The cost is `default` units if the header is absent, is not a non-negative integer, or has different values. Numbers
/// above 64 bits count as the largest number.
///
/// Clients write headers: use a header that a trusted proxy sets or removes.
///
/// # Panics
/// If `name` cannot be the name of a header; see [`try_header`].
#[track_caller]
pub fn header(name: &str, default: u64) -> impl Fn(&RequestHead<'_>) -> u64 + Send + Sync + use<> {
    header_named(valid_header(name), default)
}

/// Works like [`header`], but returns an error for an invalid name.
///
/// # Errors
/// [`InvalidHeaderName`] if `name` is empty or not a token (RFC 9110, section 5.1).
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

/// Charges the length of the request's body, in units of `bytes_per_unit` bytes (0 counts as 1).
///
/// The cost is `Content-Length` in units, rounded up to at least 1. Without the header, or with `Transfer-Encoding`, the cost
/// is `default` units: set the default to the cost of the longest body that you accept.
pub fn body_size(
    bytes_per_unit: u64,
    default: u64,
) -> impl Fn(&RequestHead<'_>) -> u64 + Send + Sync {
    let bytes_per_unit = bytes_per_unit.max(1);
    move |head: &RequestHead<'_>| match number_in(head.headers(), &CONTENT_LENGTH) {
        // A server reads a chunked body in full, whatever length the client announced before.
        Some(bytes) if !head.headers().contains_key(TRANSFER_ENCODING) => {
            bytes.div_ceil(bytes_per_unit).max(1)
        }
        _ => default,
    }
}

/// Returns the non-negative integer in a header, if all lines agree; above 64 bits the largest one.
pub(crate) fn number_in(headers: &HeaderMap, name: &HeaderName) -> Option<u64> {
    let mut lines = headers.get_all(name).iter();
    let first = lines.next()?.as_bytes();
    if first.is_empty() || lines.any(|another| another.as_bytes() != first) {
        return None;
    }
    first.iter().try_fold(0_u64, |number, byte| {
        byte.is_ascii_digit().then(|| {
            number
                .saturating_mul(10)
                .saturating_add(u64::from(byte - b'0'))
        })
    })
}
