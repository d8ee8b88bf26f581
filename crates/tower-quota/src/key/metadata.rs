//! Counting by gRPC metadata.

use base64::Engine;
use http::header::{HeaderName, HeaderValue, InvalidHeaderName};
use tower_quota_core::{Key, Name};

use super::KeyExtractor;
use super::basic_user::LENIENT;
use super::told::Told;
use crate::head::RequestHead;

/// Counts by the value of a gRPC request's metadata, such as a tenant. Names know no upper or lower case. Values of
/// names that end in `-bin` are bytes: they travel in base64, padded or not, several perhaps in one line, and are
/// decoded.
///
/// Everything else is as with [`header`](super::header): absent or empty, it is missing, as are bytes that cannot be
/// decoded; different values name nobody.
///
/// # Panics
/// When `name` cannot be the name of metadata; see [`try_metadata`].
#[must_use]
#[track_caller]
pub fn metadata(name: &str) -> Metadata {
    match try_metadata(name) {
        Ok(metadata) => metadata,
        #[expect(clippy::panic, reason = "documented: a name written in code fails at start")]
        Err(_) => panic!("{name:?} cannot be the name of metadata: give a token such as \"x-tenant\""),
    }
}

/// [`metadata`] for a name that was not written in code.
///
/// # Errors
/// [`InvalidHeaderName`] when `name` is empty or not a token (RFC 9110, section 5.1).
pub fn try_metadata(name: &str) -> Result<Metadata, InvalidHeaderName> {
    let name = HeaderName::from_bytes(name.as_bytes())?;
    Ok(Metadata { scope: Name::from(format!("metadata {name}")), is_binary: name.as_str().ends_with("-bin"), name })
}

/// The extractor of [`metadata`].
#[derive(Clone, Debug)]
pub struct Metadata {
    scope: Name,
    name: HeaderName,
    is_binary: bool,
}

impl KeyExtractor for Metadata {
    fn scope(&self) -> Name {
        self.scope
    }

    fn extract<'r>(&self, head: &RequestHead<'r>) -> Option<Key<'r>> {
        if !self.is_binary {
            return Told::by_header(head.headers(), &self.name).into_key(self.scope);
        }
        let lines = head.headers().get_all(&self.name).iter().map(HeaderValue::as_bytes);
        let values = lines.flat_map(|line| line.split(|byte| *byte == b','));
        Told::by(values.map(|value| LENIENT.decode(value.trim_ascii()).ok()))
            .and_then(|value| value)
            .into_key(self.scope)
    }
}
