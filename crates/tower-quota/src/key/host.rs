//! Counting by host.

use core::iter::once;
use std::borrow::Cow;

use http::header::{HOST, HeaderValue};
use tower_quota_core::{Key, Name};

use super::KeyExtractor;
use super::told::Told;
use crate::head::RequestHead;

const SCOPE: Name = Name::new("host");

/// Counts by the host that the client asked for: the authority of the target (HTTP/2 always has one) or the field
/// `Host`, in lower case, without port, and without the dot at the end.
///
/// It is missing when there is neither. Where they differ, or there are several, the request names nobody, as with
/// [`header`](super::header). A client can ask for any host: where the server answers to all, made-up hosts get a fresh
/// counter each.
#[must_use]
pub const fn host() -> Host {
    Host(())
}

/// The extractor of [`host`].
#[derive(Clone, Copy, Debug)]
pub struct Host(());

impl KeyExtractor for Host {
    fn scope(&self) -> Name {
        SCOPE
    }

    fn extract<'r>(&self, head: &RequestHead<'r>) -> Option<Key<'r>> {
        let authority = head.uri().authority().map(|authority| authority.as_str().as_bytes());
        let lines = head.headers().get_all(HOST).iter().map(HeaderValue::as_bytes);
        let hosts = once(authority).flatten().chain(lines).map(host_of);
        Told::by(hosts).into_key(SCOPE)
    }
}

/// The host in an authority (RFC 3986, section 3.2), spelled one way.
fn host_of(authority: &[u8]) -> Cow<'_, [u8]> {
    let authority = authority.trim_ascii();
    let host = authority.iter().rposition(|byte| *byte == b'@').map_or(authority, |at| &authority[at + 1..]);
    let host = match host.iter().position(|byte| *byte == b']') {
        Some(end) => &host[..=end],
        None => host.iter().position(|byte| *byte == b':').map_or(host, |colon| &host[..colon]),
    };
    let host = host.strip_suffix(b".").unwrap_or(host);
    if host.iter().any(u8::is_ascii_uppercase) { Cow::Owned(host.to_ascii_lowercase()) } else { Cow::Borrowed(host) }
}
