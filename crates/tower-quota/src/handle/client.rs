use core::fmt;
use core::net::IpAddr;

use http::request::Parts;
use tower_quota_core::Key;

use crate::head::RequestHead;
use crate::key::KeyExtractor;

/// The name of a client. `Debug` hides the client, who may be a secret.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum ClientKey<'a> {
    /// A text that the extractor [reads](KeyExtractor::parse), such as `203.0.113.7` or an API key.
    Text(&'a str),
    /// An address.
    Address(IpAddr),
    /// A key from an extractor.
    Key(&'a Key<'a>),
    /// The client that sent this request.
    Request(RequestHead<'a>),
}

impl ClientKey<'_> {
    pub(super) fn read_by(self, extractor: &dyn KeyExtractor) -> Option<Key<'static>> {
        match self {
            Self::Text(text) => extractor.parse(text),
            Self::Address(address) => extractor.parse(&address.to_string()),
            Self::Key(key) => Some(key.to_static()),
            Self::Request(head) => Some(extractor.extract(&head)?.to_static()),
        }
    }
}

impl<'a> From<&'a str> for ClientKey<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a String> for ClientKey<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(text)
    }
}

impl From<IpAddr> for ClientKey<'_> {
    fn from(address: IpAddr) -> Self {
        Self::Address(address)
    }
}

impl<'a> From<&'a Key<'a>> for ClientKey<'a> {
    fn from(key: &'a Key<'a>) -> Self {
        Self::Key(key)
    }
}

impl<'a> From<RequestHead<'a>> for ClientKey<'a> {
    fn from(head: RequestHead<'a>) -> Self {
        Self::Request(head)
    }
}

impl<'a> From<&'a Parts> for ClientKey<'a> {
    fn from(parts: &'a Parts) -> Self {
        Self::Request(RequestHead::from_parts(parts))
    }
}

impl fmt::Debug for ClientKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientKey").finish_non_exhaustive()
    }
}
