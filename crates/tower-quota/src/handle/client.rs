//! How operators name a client.

use core::net::IpAddr;

use tower_quota_core::Key;

use crate::key::KeyExtractor;

/// Names a client of a limit.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum ClientKey<'a> {
    /// Text that the limit's extractor reads: `203.0.113.7` for addresses, the value itself for headers and the like.
    Text(&'a str),
    /// An address.
    Address(IpAddr),
    /// The key itself, as an extractor makes it.
    Key(&'a Key<'a>),
}

impl ClientKey<'_> {
    /// Returns the key by which an extractor counts the client; `None` if it cannot read the text.
    pub(super) fn read_by(self, extractor: &dyn KeyExtractor) -> Option<Key<'static>> {
        match self {
            Self::Text(text) => extractor.parse(text),
            Self::Address(address) => extractor.parse(&address.to_string()),
            Self::Key(key) => Some(Key::owned(key.scope(), key.as_bytes())),
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
