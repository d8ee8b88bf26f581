//! Values that a request should send once.

use std::borrow::Cow;

use tower_quota_core::{Key, Name};

/// A value as a request sends it. `None` is one that cannot be read.
pub(super) type Value<'r> = Option<Cow<'r, [u8]>>;

/// Returns the key of a request that sends these values in a place for one.
///
/// The key is missing when nothing is sent, or nothing but an empty or unreadable value. Different values conflict: the
/// application might believe another one than the limiter, so all such requests share the empty key.
pub(super) fn key_of_values<'r>(scope: Name, mut values: impl Iterator<Item = Value<'r>>) -> Option<Key<'r>> {
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

/// Implements [`KeyExtractor`](super::extractor::KeyExtractor) for types with a `scope` and with `values` of a request.
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

/// Gives extractors the method `key_of`.
macro_rules! key_of {
    ($([$($generics:tt)*] $extractor:ty;)+) => {
        $(impl<$($generics)*> $extractor {
            /// Returns the key of this value, as requests are counted by it.
            ///
            /// The value is given as it is after decoding. Use it to peek at, reset or charge a client by hand.
            #[must_use]
            pub fn key_of(&self, value: impl AsRef<[u8]> + Into<Vec<u8>>) -> tower_quota_core::Key<'static> {
                tower_quota_core::Key::owned(self.scope, value)
            }
        })+
    };
}

pub(super) use {key_of, single_value};
