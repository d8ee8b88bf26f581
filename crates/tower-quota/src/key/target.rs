use std::borrow::Cow;

use http::Method;
use percent_encoding::percent_decode_str;
use tower_quota_core::Name;

use super::place::Place;
use super::value::ValueKey;
use crate::head::RequestHead;

/// Counts by the decoded [full path](RequestHead::path) without the query.
///
/// Prefer `route` (feature `axum`), or add the client by [`all`](super::all()), because clients can make up paths.
#[doc(alias = "url")]
pub fn path() -> ValueKey {
    ValueKey::of(Place::Path)
}

/// Counts by a decoded segment of the [full path](RequestHead::path).
///
/// Segment 1 of `/tenants/acme/users` is `acme`.
pub fn path_segment(index: usize) -> ValueKey {
    ValueKey::of(Place::PathSegment(index))
}

pub(super) fn segment<'r>(head: &RequestHead<'r>, index: usize) -> Option<&'r str> {
    head.path().strip_prefix('/')?.split('/').nth(index)
}

pub(super) fn decoded(text: &str) -> Cow<'_, [u8]> {
    percent_decode_str(text).into()
}

/// Counts by a query parameter, for example an API key, decoded as a form.
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

/// Counts by the requested host, in lower case, without port and trailing dot.
///
/// Reads the request target (always in HTTP/2) or `Host`. Clients can make up hosts, unless your server accepts only
/// known hosts.
///
/// If your handlers use axum-extra's `Host`, which prefers `X-Forwarded-Host`, clients can show limits and handlers
/// different hosts.
#[doc(alias = "authority")]
#[doc(alias = "virtual host")]
pub fn host() -> ValueKey {
    ValueKey::of(Place::Host)
}

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

/// Counts by the method, like `GET` or `POST`.
///
/// Methods outside RFC 9110, except `PATCH`, share one counter.
#[doc(alias = "verb")]
pub fn method() -> ValueKey {
    ValueKey::of(Place::Method)
}

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
