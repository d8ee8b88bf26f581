//! Counting by a header.

use http::header::{HeaderName, InvalidHeaderName};
use tower_quota_core::{Key, Name};

use super::KeyExtractor;
use super::told::Told;
use crate::head::RequestHead;

/// Counts by the value of a header, such as an API key. Names of headers know no upper or lower case; values do.
///
/// * Absent or empty, the key is missing. See [`MissingKey`](crate::MissingKey).
/// * Several times with one value, it is that value.
/// * Several times with different values, it names nobody: all such requests share one counter, whatever the limit does
///   about missing keys. The application might believe another of the values than the limiter, so a doubled header must
///   buy neither a fresh counter nor a way past the limit.
///
/// A client can send any value. Check that it is one you gave out before you serve it, and limit by address too, or
/// made-up values get a fresh counter each.
///
/// # Panics
/// When `name` cannot be the name of a header; see [`try_header`].
#[must_use]
#[track_caller]
pub fn header(name: &str) -> Header {
    match try_header(name) {
        Ok(header) => header,
        #[expect(clippy::panic, reason = "documented: a name written in code fails at start")]
        Err(_) => panic!("{name:?} cannot be the name of a header: give a token such as \"x-api-key\""),
    }
}

/// [`header`] for a name that was not written in code.
///
/// # Errors
/// [`InvalidHeaderName`] when `name` is empty or not a token (RFC 9110, section 5.1).
pub fn try_header(name: &str) -> Result<Header, InvalidHeaderName> {
    let name = HeaderName::from_bytes(name.as_bytes())?;
    // The prefix keeps the header `method` from being taken for the method.
    Ok(Header { scope: Name::from(format!("header {name}")), name })
}

/// The extractor of [`header`].
#[derive(Clone, Debug)]
pub struct Header {
    scope: Name,
    name: HeaderName,
}

impl KeyExtractor for Header {
    fn scope(&self) -> Name {
        self.scope
    }

    fn extract<'r>(&self, head: &RequestHead<'r>) -> Option<Key<'r>> {
        Told::by_header(head.headers(), &self.name).into_key(self.scope)
    }
}
