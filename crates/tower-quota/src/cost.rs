//! What requests cost: functions for [`Limit::cost_with`](crate::Limit::cost_with), which takes closures too.
//!
//! | cost | units | when the request does not say |
//! |---|---|---|
//! | [`header`] | the number in a header | the given default |
//! | [`body_size`] | the length of the body, in units of so many bytes | the given default |
//!
//! What a request costs is charged before the handler runs. Where only the handler or the response knows the cost, charge
//! an estimate and [settle] it.
//!
//! ```
//! use tower_quota::{Limit, Quota, cost, key};
//!
//! // Uploads pay a unit for each megabyte; those that do not say how long they are pay for ten.
//! let megabytes = Limit::new("megabytes", Quota::per_hour(1_000))
//!     .by(key::header("x-api-key"))
//!     .cost_with(cost::body_size(1_000_000, 10));
//! # let _ = megabytes;
//! ```
//!
//! [settle]: crate::settle

use http::HeaderMap;
use http::header::{CONTENT_LENGTH, HeaderName, InvalidHeaderName};

use crate::head::RequestHead;

/// The whole number in a header of the request; `default` units where it is absent or no such number, or where several
/// lines differ.
///
/// Only for headers that a trusted proxy writes, or removes from what clients send: whoever writes the header says what
/// the request costs, and 0 is free. A number too large for 64 bits is the largest, which never passes.
///
/// # Panics
/// When `name` cannot be the name of a header; see [`try_header`].
#[track_caller]
pub fn header(name: &str, default: u64) -> impl Fn(&RequestHead<'_>) -> u64 + Send + Sync + use<> {
    match try_header(name, default) {
        Ok(cost) => cost,
        #[expect(clippy::panic, reason = "documented: a name written in code fails at start")]
        Err(_) => panic!("{name:?} cannot be the name of a header: give a token such as \"x-cost\""),
    }
}

/// [`header`] for a name that was not written in code.
///
/// # Errors
/// [`InvalidHeaderName`] when `name` is empty or not a token (RFC 9110, section 5.1).
pub fn try_header(
    name: &str,
    default: u64,
) -> Result<impl Fn(&RequestHead<'_>) -> u64 + Send + Sync + use<>, InvalidHeaderName> {
    let name = HeaderName::from_bytes(name.as_bytes())?;
    Ok(move |head: &RequestHead<'_>| number_in(head.headers(), &name).unwrap_or(default))
}

/// The length of the request's body as `Content-Length` tells it, in units of `bytes_per_unit` (0 counts as 1), rounded
/// up and at least 1; `default` units where the length is not told.
///
/// Clients choose whether they tell it: over HTTP/1.1 a chunked body has no length, and over HTTP/2 any body may lack
/// it. Let the default be what the longest body that you accept would cost. What is told is true: servers cut bodies off
/// there.
pub fn body_size(bytes_per_unit: u64, default: u64) -> impl Fn(&RequestHead<'_>) -> u64 + Send + Sync {
    let bytes_per_unit = bytes_per_unit.max(1);
    move |head| match number_in(head.headers(), &CONTENT_LENGTH) {
        Some(bytes) => bytes.div_ceil(bytes_per_unit).max(1),
        None => default,
    }
}

/// The whole number in a header: digits only, on lines that agree; what is beyond 64 bits is the largest number.
pub(crate) fn number_in(headers: &HeaderMap, name: &HeaderName) -> Option<u64> {
    let mut lines = headers.get_all(name).iter();
    let first = lines.next()?.as_bytes();
    if first.is_empty() || lines.any(|another| another.as_bytes() != first) {
        return None;
    }
    first.iter().try_fold(0_u64, |number, byte| {
        byte.is_ascii_digit().then(|| number.saturating_mul(10).saturating_add(u64::from(byte - b'0')))
    })
}
