//! Keys from the target of the request: path, query, host, method.

use std::borrow::Cow;

use http::Method;
use percent_encoding::percent_decode_str;
use tower_quota_core::Name;

use super::place::Place;
use super::value::ValueKey;
use crate::head::RequestHead;

/// Counts by the path, without the query and with percent-encoding decoded.
///
/// Each path that a client makes up gets a new counter: prefer `route`, with the feature `axum`, or combine the path with
/// the client by [`all`](super::all()). Inside axum's `nest` the key is the [full path](RequestHead::path).
#[doc(alias = "url")]
pub const fn path() -> ValueKey {
    ValueKey {
        scope: Name::new("path"),
        place: Place::Path,
    }
}

/// Counts by one segment of the path: segment 1 of `/tenants/acme/users` is `acme`.
///
/// The extractor decodes percent-encoding. The key is missing if the path is shorter or the segment is empty. Segments
/// are those of the [full path](RequestHead::path). A client can make up any value: limit by address too.
pub fn path_segment(index: usize) -> ValueKey {
    ValueKey {
        scope: Name::from(format!("path segment {index}")),
        place: Place::PathSegment(index),
    }
}

/// Returns a segment of the path.
pub(super) fn segment<'r>(head: &RequestHead<'r>, index: usize) -> Option<&'r str> {
    head.path().strip_prefix('/')?.split('/').nth(index)
}

/// Returns a part of a path with percent-encoding decoded: `/%61` and `/a` are the same.
pub(super) fn decoded(text: &str) -> Cow<'_, [u8]> {
    percent_decode_str(text).into()
}

/// Counts by the value of a parameter of the query, such as an API key in `?key=`.
///
/// The extractor decodes names and values as a form (`application/x-www-form-urlencoded`), so that each notation of a
/// value is one client. The key is missing if the parameter is absent or empty. Conflicting values are as in
/// [`header`](super::header()). A client can make up any value: limit by address too.
pub fn query(name: impl Into<Name>) -> ValueKey {
    let name = name.into();
    ValueKey {
        scope: Name::from(format!("query {name}")),
        place: Place::Query(name),
    }
}

/// Returns the values of the query's parameters of this name.
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
/// The host is the authority of the target (HTTP/2 always has one) or the field `Host`. The key is missing without both.
/// Different hosts are conflicting values, as in [`header`](super::header()). The extractor does not read
/// `X-Forwarded-Host`, which the extractor `Host` of axum-extra prefers: if your handlers use that one, clients can name
/// one host to the limit and another to the handler. A client can request any host, and each made-up host gets a new
/// counter, unless your server accepts only its own hosts.
#[doc(alias = "authority")]
#[doc(alias = "virtual host")]
pub const fn host() -> ValueKey {
    ValueKey {
        scope: Name::new("host"),
        place: Place::Host,
    }
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
/// The key is never missing. Methods other than those of RFC 9110 and `PATCH` share one counter, so that made-up
/// methods get no new counter.
#[doc(alias = "verb")]
pub const fn method() -> ValueKey {
    ValueKey {
        scope: Name::new("method"),
        place: Place::Method,
    }
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
