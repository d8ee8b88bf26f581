//! The trait of extractors, which read keys from requests.

use core::any::Any;
use std::sync::Arc;

use tower_quota_core::{Key, Name};

use crate::head::RequestHead;

/// Reads the key that a request is counted by.
///
/// Implement [`scope`](Self::scope) and [`extract`](Self::extract). An extractor runs on every request, so it must not
/// block and should not allocate. Keys may borrow from the request.
///
/// ```
/// use tower_quota::{Key, Name, RequestHead, key::KeyExtractor};
///
/// /// Counts by the first two letters of the language that the client prefers.
/// struct Language;
///
/// impl KeyExtractor for Language {
///     fn scope(&self) -> Name {
///         const { Name::new("language") }
///     }
///
///     fn extract<'r>(&self, head: &RequestHead<'r>) -> Option<Key<'r>> {
///         let language = head.headers().get("accept-language")?.as_bytes().get(..2)?;
///         Some(Key::new(self.scope(), language))
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a key extractor",
    note = "use an extractor of `tower_quota::key`, such as `key::client_ip()` or `key::from_fn(\"tenant\", |head| ..)`"
)]
pub trait KeyExtractor: Any + Send + Sync {
    /// Returns the scope of the keys: a name for the kind of client that they identify.
    ///
    /// Extractors with the same scope must make the same keys, so put your extractor's settings into its scope.
    fn scope(&self) -> Name;

    /// Returns the key of a request, or `None` if the key is missing.
    ///
    /// Return `None` instead of an empty key. The extractors of this crate return an empty key for a request with
    /// conflicting values.
    fn extract<'r>(&self, head: &RequestHead<'r>) -> Option<Key<'r>>;

    /// Calls `visit` with the key of every value that the request sends, conflicting values too.
    ///
    /// Block lists use this method, so that a client cannot hide a listed value behind another one. The default visits
    /// the extracted key. Blocks refuse a request that sends more than 64 keys for one limit.
    fn each_key(&self, head: &RequestHead<'_>, visit: &mut dyn FnMut(&Key<'_>)) {
        if let Some(key) = self.extract(head).filter(|key| !key.as_bytes().is_empty()) {
            visit(&key);
        }
    }

    /// Returns the key that an operator names by this text: an API key, a user name, an address.
    ///
    /// The default uses the text itself. Returns `None` if the text cannot be a key. [`all`](super::all()) always
    /// returns `None`, and [`first_of`](super::first_of()) prefers a part that reads the text as an address.
    fn parse(&self, text: &str) -> Option<Key<'static>> {
        (!text.is_empty()).then(|| Key::owned(self.scope(), text))
    }
}

/// Implements the trait for pointers to extractors.
macro_rules! pointers {
    ($($pointer:ident)+) => {
        $(impl KeyExtractor for $pointer<dyn KeyExtractor> {
            fn scope(&self) -> Name {
                (**self).scope()
            }

            fn extract<'r>(&self, head: &RequestHead<'r>) -> Option<Key<'r>> {
                (**self).extract(head)
            }

            fn each_key(&self, head: &RequestHead<'_>, visit: &mut dyn FnMut(&Key<'_>)) {
                (**self).each_key(head, visit);
            }

            fn parse(&self, text: &str) -> Option<Key<'static>> {
                (**self).parse(text)
            }
        })+
    };
}

pointers!(Box Arc);
