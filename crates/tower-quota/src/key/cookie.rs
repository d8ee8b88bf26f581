//! Counting by a cookie.

use std::borrow::Cow;

use http::header::{COOKIE, HeaderValue};
use percent_encoding::percent_decode;
use tower_quota_core::{Key, Name};

use super::KeyExtractor;
use super::told::Told;
use crate::head::RequestHead;

/// Counts by the value of a cookie (RFC 6265), such as a session. Percent signs are decoded and quotes around the value
/// taken off, so that one session spelled differently is one client.
///
/// It is missing when absent or empty. Sent several times with different values, it names nobody, as with
/// [`header`](super::header): do not set cookies of one name for several paths. A client can make up any value: limit
/// by address too.
#[must_use]
pub fn cookie(name: impl Into<Name>) -> Cookie {
    let name = name.into();
    Cookie { scope: Name::from(format!("cookie {name}")), name }
}

/// The extractor of [`cookie`].
#[derive(Clone, Debug)]
pub struct Cookie {
    scope: Name,
    name: Name,
}

impl KeyExtractor for Cookie {
    fn scope(&self) -> Name {
        self.scope
    }

    fn extract<'r>(&self, head: &RequestHead<'r>) -> Option<Key<'r>> {
        let lines = head.headers().get_all(COOKIE).iter().map(HeaderValue::as_bytes);
        let pairs = lines.flat_map(|line| line.split(|byte| *byte == b';'));
        Told::by(pairs.filter_map(|pair| self.value(pair))).into_key(self.scope)
    }
}

impl Cookie {
    /// The value in a pair of this name.
    fn value<'r>(&self, pair: &'r [u8]) -> Option<Cow<'r, [u8]>> {
        let equals = pair.iter().position(|byte| *byte == b'=')?;
        let (name, value) = (pair[..equals].trim_ascii(), pair[equals + 1..].trim_ascii());
        let value = value.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")).unwrap_or(value);
        percent_decode(name).eq(self.name.as_str().bytes()).then(|| percent_decode(value).into())
    }
}
