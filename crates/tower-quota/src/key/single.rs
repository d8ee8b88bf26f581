//! Keys from values that a request should send once.

use std::borrow::Cow;

use tower_quota_core::{Key, Name};

/// A value that a request sends; `None` if it cannot be read.
pub(super) type SentValue<'r> = Option<Cow<'r, [u8]>>;

/// Returns the key of a request that sends these values in a place for one value.
///
/// The key is missing if no value is sent, or only an empty or unreadable one. Different values conflict: the
/// application might use another one than the limiter, so all such requests share the empty key.
pub(super) fn key_of_values<'r>(
    scope: Name,
    mut values: impl Iterator<Item = SentValue<'r>>,
) -> Option<Key<'r>> {
    let first = values.next()?;
    if values.any(|another| another != first) {
        return Some(Key::new(scope, &[]));
    }
    match first? {
        Cow::Borrowed([]) => None,
        Cow::Borrowed(bytes) => Some(Key::new(scope, bytes)),
        Cow::Owned(bytes) if bytes.is_empty() => None,
        Cow::Owned(bytes) => Some(Key::owned(scope, bytes)),
    }
}

/// Returns whether a key stands for conflicting values.
pub(crate) fn is_conflict(key: &Key<'_>) -> bool {
    key.as_bytes().is_empty() && *key != Key::EVERYONE
}

/// Implements [`KeyExtractor`](super::extractor::KeyExtractor) for types with `scope` and `values`.
macro_rules! single_value {
    ($($extractor:ident)+) => {
        $(impl $crate::key::extractor::KeyExtractor for $extractor {
            fn scope(&self) -> tower_quota_core::Name {
                self.scope
            }

            fn extract<'r>(&self, head: &$crate::head::RequestHead<'r>) -> Option<tower_quota_core::Key<'r>> {
                $crate::key::single::key_of_values(self.scope, self.values(head))
            }

            fn each_value(&self, head: &$crate::head::RequestHead<'_>, visit: &mut dyn FnMut(&[u8])) {
                self.values(head).flatten().for_each(|value| visit(&value));
            }

        })+
    };
}

/// Adds the method `key_of` to extractors.
macro_rules! key_of {
    ($([$($generics:tt)*] $extractor:ty;)+) => {
        $(impl<$($generics)*> $extractor {
            /// Returns the key by which requests with this value are counted.
            ///
            /// Give the decoded value. Use the key to peek at, reset or charge a client.
            pub fn key_of(&self, value: impl AsRef<[u8]> + Into<Vec<u8>>) -> tower_quota_core::Key<'static> {
                tower_quota_core::Key::owned(self.scope, value)
            }
        })+
    };
}

pub(super) use {key_of, single_value};
