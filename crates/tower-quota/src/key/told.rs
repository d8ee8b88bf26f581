//! What a request says in a place where it should say one thing.

use std::borrow::Cow;

use http::header::{AsHeaderName, HeaderMap, HeaderValue};
use tower_quota_core::{Key, Name};

/// What a request says in a place where it should say one thing, such as a header that names the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told<T> {
    Nothing,
    One(T),
    /// It says different things. The application might believe another than the limiter, so none is believed.
    Contradiction,
}

impl<T: PartialEq> Told<T> {
    pub(super) fn by(mut values: impl Iterator<Item = T>) -> Self {
        match values.next() {
            None => Self::Nothing,
            Some(first) if values.all(|another| another == first) => Self::One(first),
            Some(_) => Self::Contradiction,
        }
    }
}

impl<'r> Told<&'r [u8]> {
    /// By all lines of a header.
    pub(super) fn by_header(headers: &'r HeaderMap, name: impl AsHeaderName) -> Self {
        Self::by(headers.get_all(name).iter().map(HeaderValue::as_bytes))
    }
}

impl<T> Told<T> {
    pub(super) fn and_then<U>(self, read: impl FnOnce(T) -> Option<U>) -> Told<U> {
        match self {
            Self::Nothing => Told::Nothing,
            Self::One(value) => read(value).map_or(Told::Nothing, Told::One),
            Self::Contradiction => Told::Contradiction,
        }
    }
}

impl<'r, T: Into<Cow<'r, [u8]>>> Told<T> {
    /// The key: missing if nothing or nothing but an empty text is said; the one that requests without a key share if
    /// there is a contradiction.
    pub(super) fn into_key(self, scope: Name) -> Option<Key<'r>> {
        match self {
            Self::Nothing => None,
            Self::One(value) => match value.into() {
                Cow::Borrowed([]) => None,
                Cow::Borrowed(bytes) => Some(Key::new(scope, bytes)),
                Cow::Owned(bytes) if bytes.is_empty() => None,
                Cow::Owned(bytes) => Some(Key::owned(scope, bytes)),
            },
            Self::Contradiction => Some(Key::new(scope, &[])),
        }
    }
}
