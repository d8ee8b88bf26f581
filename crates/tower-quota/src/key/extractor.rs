//! The trait of extractors, which read keys from requests.

use core::any::Any;
use core::fmt;
use std::sync::Arc;

use tower_quota_core::{Key, Name};

use crate::head::RequestHead;

/// Reads the key that a request is counted by.
///
/// Implement [`scope`](Self::scope) and [`extract`](Self::extract). Extractors run on every request: do not block, and
/// borrow from the request instead of allocating.
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
    /// Returns the scope of the keys: a name for the kind of client.
    ///
    /// Extractors of one scope must make the same keys, so put your extractor's settings into the scope.
    fn scope(&self) -> Name;

    /// Returns the key of a request, or `None` if the key is missing.
    ///
    /// An empty key means that the request has conflicting values.
    fn extract<'r>(&self, head: &RequestHead<'r>) -> Option<Key<'r>>;

    /// Calls `visit` with the key of every value that the request sends, also of conflicting values.
    ///
    /// Block lists use this method, so that clients cannot hide a listed value. They refuse requests with more than 64 keys
    /// for one limit. The default visits the extracted key.
    fn each_key(&self, head: &RequestHead<'_>, visit: &mut dyn FnMut(&Key<'_>)) {
        if let Some(key) = self.extract(head).filter(|key| !key.as_bytes().is_empty()) {
            visit(&key);
        }
    }

    /// Returns the key that an operator names by this text: an API key, a user name, an address.
    ///
    /// The default uses the text itself. [`all`](super::all()) has no such text. [`first_of`](super::first_of()) prefers a
    /// part that reads the text as an address.
    fn parse(&self, text: &str) -> Option<Key<'static>> {
        (!text.is_empty()).then(|| Key::owned(self.scope(), text))
    }
}

impl fmt::Debug for dyn KeyExtractor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyExtractor({})", self.scope())
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
