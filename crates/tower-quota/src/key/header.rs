use std::borrow::Cow;

use http::header::{COOKIE, HeaderName, HeaderValue, InvalidHeaderName};
use percent_encoding::percent_decode;
use tower_quota_core::Name;

use super::place::Place;
use super::value::ValueKey;
use crate::head::RequestHead;
use crate::valid::valid_header;

/// Counts by a header, for example an API key, without surrounding spaces.
///
/// Different values [conflict](super). Limit by address too, because clients can make up values.
///
/// # Panics
/// If `name` is invalid.
#[track_caller]
#[doc(alias = "api key")]
pub fn header(name: &str) -> ValueKey {
    ValueKey::of(Place::Header(valid_header(name)))
}

/// The fallible [`header`].
///
/// # Errors
/// If `name` is invalid.
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

/// Counts by a cookie (RFC 6265), decoded and without quotes.
///
/// Set the cookie for one path only, because different values [conflict](super).
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
