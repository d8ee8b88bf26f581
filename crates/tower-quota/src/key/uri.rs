//! Keys from the target of the request: path, query, host, method.

use core::iter::once;
use std::borrow::Cow;

use http::Method;
use percent_encoding::percent_decode_str;
use tower_quota_core::{Key, Name};

use super::extractor::KeyExtractor;
use super::single::{SentValue, key_of, key_of_values, single_value};
use crate::head::RequestHead;

/// Counts by the path, without the query and with percent-encoding decoded.
///
/// Each path that a client makes up gets a new counter: prefer `route`, with the feature `axum`, or combine it with the
/// client by [`all`](super::all()). It is the [requested path](RequestHead::path), also inside axum's `nest`.
#[must_use]
#[doc(alias = "url")]
pub const fn path() -> PathKey {
    PathKey {
        scope: Name::new("path"),
    }
}

/// The extractor of [`path`].
#[derive(Clone, Copy, Debug)]
pub struct PathKey {
    scope: Name,
}

impl PathKey {
    fn values<'r>(&self, head: &RequestHead<'r>) -> impl Iterator<Item = SentValue<'r>> + use<'r> {
        once(Some(decoded(head.path())))
    }
}

/// Counts by one segment of the path: segment 1 of `/tenants/acme/users` is `acme`.
///
/// Percent-encoding is decoded. The key is missing if the path is shorter or the segment is empty. Segments are those
/// of the [requested path](RequestHead::path), also inside axum's `nest`. A client can make up any value: limit by
/// address too.
#[must_use]
pub fn path_segment(index: usize) -> PathSegmentKey {
    PathSegmentKey {
        scope: Name::from(format!("path segment {index}")),
        index,
    }
}

/// The extractor of [`path_segment`].
#[derive(Clone, Copy, Debug)]
pub struct PathSegmentKey {
    scope: Name,
    index: usize,
}

impl PathSegmentKey {
    fn values<'r>(&self, head: &RequestHead<'r>) -> impl Iterator<Item = SentValue<'r>> + use<'r> {
        let segments = head
            .path()
            .strip_prefix('/')
            .into_iter()
            .flat_map(|path| path.split('/'));
        segments
            .skip(self.index)
            .take(1)
            .map(|segment| Some(decoded(segment)))
    }
}

/// Returns a part of a path with percent-encoding decoded: `/%61` and `/a` are the same.
pub(super) fn decoded(text: &str) -> Cow<'_, [u8]> {
    percent_decode_str(text).into()
}

/// Counts by the value of a parameter of the query, such as an API key in `?key=`.
///
/// Names and values are decoded as a form (`application/x-www-form-urlencoded`), so that each notation of a value is
/// one client. The key is missing if the parameter is absent or empty. Requests with different values share one
/// counter, as with [`header`](super::header()). A client can make up any value: limit by address too.
#[must_use]
pub fn query(name: impl Into<Name>) -> QueryKey {
    let name = name.into();
    QueryKey {
        scope: Name::from(format!("query {name}")),
        name,
    }
}

/// The extractor of [`query`].
#[derive(Clone, Debug)]
pub struct QueryKey {
    scope: Name,
    name: Name,
}

impl QueryKey {
    fn values<'r>(&self, head: &RequestHead<'r>) -> impl Iterator<Item = SentValue<'r>> + use<'r> {
        let name = self.name.as_str();
        let pairs = form_urlencoded::parse(head.uri().query().unwrap_or_default().as_bytes());
        pairs
            .filter(move |(sent, _)| sent == name)
            .map(|(_, value)| {
                Some(match value {
                    Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
                    Cow::Owned(text) => Cow::Owned(text.into_bytes()),
                })
            })
    }
}

/// Counts by the requested host, in lower case, without the port and the trailing dot.
///
/// The host is the authority of the target (HTTP/2 always has one) or the field `Host`. The key is missing if there is
/// neither. Requests with different hosts share one counter, as with [`header`](super::header()). A client can request
/// any host: if the server accepts all, each made-up host gets a new counter.
#[must_use]
#[doc(alias = "authority")]
#[doc(alias = "virtual host")]
pub const fn host() -> HostKey {
    HostKey {
        scope: Name::new("host"),
    }
}

/// The extractor of [`host`].
#[derive(Clone, Copy, Debug)]
pub struct HostKey {
    scope: Name,
}

impl HostKey {
    /// Returns the key of this host, in any notation.
    pub fn key_of(&self, host: &str) -> Key<'static> {
        Key::owned(self.scope, host_of(host.as_bytes()).into_owned())
    }

    fn values<'r>(&self, head: &RequestHead<'r>) -> impl Iterator<Item = SentValue<'r>> + use<'r> {
        head.hosts().map(Some)
    }
}

impl KeyExtractor for HostKey {
    fn scope(&self) -> Name {
        self.scope
    }

    fn extract<'r>(&self, head: &RequestHead<'r>) -> Option<Key<'r>> {
        key_of_values(self.scope, self.values(head))
    }

    fn each_value(&self, head: &RequestHead<'_>, visit: &mut dyn FnMut(&[u8])) {
        self.values(head).flatten().for_each(|host| visit(&host));
    }

    fn parse(&self, text: &str) -> Option<Key<'static>> {
        Some(self.key_of(text)).filter(|key| !key.as_bytes().is_empty())
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
#[must_use]
#[doc(alias = "verb")]
pub const fn method() -> MethodKey {
    MethodKey {
        scope: Name::new("method"),
    }
}

/// The extractor of [`method`].
#[derive(Clone, Copy, Debug)]
pub struct MethodKey {
    scope: Name,
}

impl MethodKey {
    /// Returns the key of this method.
    pub fn key_of(&self, method: &Method) -> Key<'static> {
        Key::owned(self.scope, known(method))
    }
}

/// Returns the name of a known method, and an empty text for others.
fn known(method: &Method) -> &str {
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

impl KeyExtractor for MethodKey {
    fn scope(&self) -> Name {
        self.scope
    }

    fn extract<'r>(&self, head: &RequestHead<'r>) -> Option<Key<'r>> {
        Some(Key::new(self.scope, known(head.method()).as_bytes()))
    }
}

single_value!(PathKey PathSegmentKey QueryKey);

key_of! {
    [] PathKey;
    [] PathSegmentKey;
    [] QueryKey;
}
