//! Keys from headers and cookies.

use std::borrow::Cow;

use http::header::{COOKIE, HeaderName, HeaderValue, InvalidHeaderName};
use percent_encoding::percent_decode;
use tower_quota_core::Name;

use super::place::Place;
use super::value::ValueKey;
use crate::head::RequestHead;
use crate::valid::valid_header;

/// Counts by the value of a header, such as an API key, without the spaces around the value.
///
/// The key is missing if the header is absent or empty. If a client sends different values, a limit that refuses requests
/// without a key refuses the request. Otherwise all such requests share one counter, in addition to the counters of the
/// single values.
///
/// A client can send any value, and each made-up value gets a new counter: limit by address too.
///
/// # Panics
/// If `name` cannot be the name of a header; see [`try_header`].
#[track_caller]
#[doc(alias = "api key")]
pub fn header(name: &str) -> ValueKey {
    ValueKey::of(Place::Header(valid_header(name)))
}

/// Works like [`header`], but returns an error for an invalid name.
///
/// # Errors
/// [`InvalidHeaderName`] if `name` is empty or not a token (RFC 9110, section 5.1).
pub fn try_header(name: &str) -> Result<ValueKey, InvalidHeaderName> {
    Ok(ValueKey::of(Place::Header(HeaderName::from_bytes(
        name.as_bytes(),
    )?)))
}

pub(super) fn lines<'r>(
    head: &RequestHead<'r>,
    name: &HeaderName,
) -> impl Iterator<Item = &'r [u8]> + use<'r> {
    let lines = head.headers().get_all(name).iter();
    lines.map(|line| line.as_bytes().trim_ascii())
}

/// Counts by the value of a cookie (RFC 6265), such as a session, decoded and without quotes.
///
/// Do not set cookies of one name for several paths: different values conflict, as in [`header`]. A client can make up
/// any value: limit by address too.
#[doc(alias = "session")]
pub fn cookie(name: impl Into<Name>) -> ValueKey {
    ValueKey::of(Place::Cookie(name.into()))
}

pub(super) fn cookies<'r>(
    head: &RequestHead<'r>,
    name: Name,
) -> impl Iterator<Item = Cow<'r, [u8]>> + use<'r> {
    let lines = head.headers().get_all(COOKIE).iter();
    lines
        .map(HeaderValue::as_bytes)
        .flat_map(|line| line.split(|byte| *byte == b';'))
        .filter_map(move |pair| cookie_value(pair, name))
}

fn cookie_value(pair: &[u8], name: Name) -> Option<Cow<'_, [u8]>> {
    let equals = pair.iter().position(|byte| *byte == b'=')?;
    let sent = pair[..equals].trim_ascii();
    let value = pair[equals + 1..].trim_ascii();
    let quoted = value.strip_prefix(b"\"");
    let value = quoted
        .and_then(|rest| rest.strip_suffix(b"\""))
        .unwrap_or(value);
    percent_decode(sent)
        .eq(name.as_str().bytes())
        .then(|| percent_decode(value).into())
}
