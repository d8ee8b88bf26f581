//! Keys from the target of the request: path, query, host, method.

use std::borrow::Cow;

use http::Method;
use percent_encoding::percent_decode_str;
use tower_quota_core::Name;

use super::place::Place;
use super::value::ValueKey;
use crate::head::RequestHead;

/// Counts by the [full path](RequestHead::path), decoded and without the query.
///
/// Each path that a client makes up gets a new counter: prefer `route`, with the feature `axum`, or combine the path with
/// the client by [`all`](super::all()).
#[doc(alias = "url")]
pub fn path() -> ValueKey {
    ValueKey::of(Place::Path)
}

/// Counts by one segment of the [full path](RequestHead::path), decoded: segment 1 of `/tenants/acme/users` is `acme`.
///
/// A client can make up any value: limit by address too.
pub fn path_segment(index: usize) -> ValueKey {
    ValueKey::of(Place::PathSegment(index))
}

pub(super) fn segment<'r>(head: &RequestHead<'r>, index: usize) -> Option<&'r str> {
    head.path().strip_prefix('/')?.split('/').nth(index)
}

/// Returns a part of a path with percent-encoding decoded: `/%61` and `/a` are the same.
pub(super) fn decoded(text: &str) -> Cow<'_, [u8]> {
    percent_decode_str(text).into()
}

/// Counts by a parameter of the query, such as an API key in `?key=`, decoded as a form.
///
/// Different values conflict, as in [`header`](super::header()). A client can make up any value: limit by address too.
pub fn query(name: impl Into<Name>) -> ValueKey {
    ValueKey::of(Place::Query(name.into()))
}

pub(super) fn query_values<'r>(
    head: &RequestHead<'r>,
    name: Name,
) -> impl Iterator<Item = Cow<'r, [u8]>> + use<'r> {
    let query = head.uri().query().unwrap_or_default();
    form_urlencoded::parse(query.as_bytes())
        .filter(move |(sent, _)| sent == name.as_str())
        .map(|(_, value)| match value {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        })
}

/// Counts by the requested host, in lower case, without the port and the trailing dot.
///
/// The host is the authority of the target (HTTP/2 always has one) or the field `Host`. Different hosts conflict, as in
/// [`header`](super::header()). A client can request any host, and each made-up host gets a new counter, unless your server
/// accepts only its own.
///
/// `X-Forwarded-Host` is not read. axum-extra's `Host` prefers that header: with it, clients can name one host to the limit
/// and another to your handlers.
#[doc(alias = "authority")]
#[doc(alias = "virtual host")]
pub fn host() -> ValueKey {
    ValueKey::of(Place::Host)
}

/// Returns the host in an authority (RFC 3986, section 3.2), in one notation.
pub(crate) fn host_of(authority: &[u8]) -> Cow<'_, [u8]> {
    let authority = authority.trim_ascii();
    let host = authority
        .iter()
        .rposition(|byte| *byte == b'@')
        .map_or(authority, |at| &authority[at + 1..]);
    let host = match host.iter().position(|byte| *byte == b']') {
        Some(end) => &host[..=end],
        None => host
            .iter()
            .position(|byte| *byte == b':')
            .map_or(host, |colon| &host[..colon]),
    };
    let host = host.strip_suffix(b".").unwrap_or(host);
    if host.iter().any(u8::is_ascii_uppercase) {
        Cow::Owned(host.to_ascii_lowercase())
    } else {
        Cow::Borrowed(host)
    }
}

/// Counts by the request's method, such as `GET` or `POST`.
///
/// Methods other than those of RFC 9110 and `PATCH` share one counter, so that made-up methods get no new counter.
#[doc(alias = "verb")]
pub fn method() -> ValueKey {
    ValueKey::of(Place::Method)
}

/// Returns the name of a known method, and an empty text for others.
pub(super) fn known(method: &Method) -> &str {
    match *method {
        Method::GET
        | Method::HEAD
        | Method::POST
        | Method::PUT
        | Method::DELETE
        | Method::CONNECT
        | Method::OPTIONS
        | Method::TRACE
        | Method::PATCH => method.as_str(),
        _ => "",
    }
}
