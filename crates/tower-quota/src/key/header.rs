//! Keys from headers and cookies.

use std::borrow::Cow;

use http::header::{COOKIE, HeaderName, HeaderValue, InvalidHeaderName};
use percent_encoding::percent_decode;
use tower_quota_core::Name;

use super::single::{SentValue, key_of, single_value};
use crate::head::RequestHead;
use crate::valid::valid_header;

/// Counts by the value of a header, such as an API key.
///
/// The header's name is not case-sensitive; its value is. Spaces and tabs around the value are no part of it (RFC 9110,
/// section 5.5): over HTTP/2 a client can send them.
///
/// * If the header is absent or empty, the key is missing: see [`MissingKey`](crate::MissingKey).
/// * If it is sent several times with one value, the key is that value.
/// * If it is sent several times with different values, the request is refused as without the header. If the limit counts or
///   skips requests without a key, all requests with different values share one counter.
///
/// A client can send any value. Check that you issued the value before you serve the request, and limit by address too,
/// or each made-up value gets a new counter.
///
/// # Panics
/// When `name` cannot be the name of a header; see [`try_header`].
#[must_use]
#[track_caller]
#[doc(alias = "api key")]
pub fn header(name: &str) -> HeaderKey {
    HeaderKey::new(valid_header(name))
}

/// Works like [`header`], but returns an error for an invalid name.
///
/// # Errors
/// [`InvalidHeaderName`] when `name` is empty or not a token (RFC 9110, section 5.1).
pub fn try_header(name: &str) -> Result<HeaderKey, InvalidHeaderName> {
    HeaderName::from_bytes(name.as_bytes()).map(HeaderKey::new)
}

/// The extractor of [`header`].
#[derive(Clone, Debug)]
pub struct HeaderKey {
    scope: Name,
    name: HeaderName,
}

impl HeaderKey {
    fn new(name: HeaderName) -> Self {
        Self {
            scope: Name::from(format!("header {name}")),
            name,
        }
    }

    fn values<'r>(&self, head: &RequestHead<'r>) -> impl Iterator<Item = SentValue<'r>> + use<'r> {
        head.headers()
            .get_all(&self.name)
            .iter()
            .map(|line| Some(line.as_bytes().trim_ascii().into()))
    }
}

/// Counts by the value of a cookie (RFC 6265), such as a session.
///
/// Percent-encoding is decoded and quotes around the value are removed, so that each notation of a session is one
/// client. The key is missing if the cookie is absent or empty. Requests with different values share one counter, as
/// with [`header`]: do not set cookies of one name for several paths. A client can make up any value: limit by address
/// too.
#[must_use]
#[doc(alias = "session")]
pub fn cookie(name: impl Into<Name>) -> CookieKey {
    let name = name.into();
    CookieKey {
        scope: Name::from(format!("cookie {name}")),
        name,
    }
}

/// The extractor of [`cookie`].
#[derive(Clone, Debug)]
pub struct CookieKey {
    scope: Name,
    name: Name,
}

impl CookieKey {
    fn values<'r>(&self, head: &RequestHead<'r>) -> impl Iterator<Item = SentValue<'r>> + use<'r> {
        let name = self.name;
        let lines = head
            .headers()
            .get_all(COOKIE)
            .iter()
            .map(HeaderValue::as_bytes);
        lines
            .flat_map(|line| line.split(|byte| *byte == b';'))
            .filter_map(move |pair| cookie_value(pair, name))
            .map(Some)
    }
}

/// Returns the value in a pair of this name.
fn cookie_value(pair: &[u8], name: Name) -> Option<Cow<'_, [u8]>> {
    let equals = pair.iter().position(|byte| *byte == b'=')?;
    let (sent, value) = (pair[..equals].trim_ascii(), pair[equals + 1..].trim_ascii());
    let value = value
        .strip_prefix(b"\"")
        .and_then(|rest| rest.strip_suffix(b"\""))
        .unwrap_or(value);
    percent_decode(sent)
        .eq(name.as_str().bytes())
        .then(|| percent_decode(value).into())
}

single_value!(HeaderKey CookieKey);

key_of! {
    [] HeaderKey;
    [] CookieKey;
}
