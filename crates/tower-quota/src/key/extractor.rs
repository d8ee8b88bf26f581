use core::any::Any;
use core::fmt;
use std::sync::Arc;

use tower_quota_core::{Key, Name};

use crate::head::RequestHead;

/// Reads the key by which a limit counts a request.
///
/// Implement [`scope`](Self::scope) and [`extract`](Self::extract). Do not block, because extractors run on every
/// request.
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
    /// Returns the scope, a name for the kind of client.
    ///
    /// Extractors with one scope must make equal keys, so include your settings.
    fn scope(&self) -> Name;

    /// Returns the key, `None` if missing, or an empty key for conflicting values.
    fn extract<'r>(&self, head: &RequestHead<'r>) -> Option<Key<'r>>;

    /// Returns whether the key comes from credentials, such as a token or a session.
    ///
    /// By default the layer then refuses requests without the key with 401 instead of 400. See
    /// [`MissingKey`](crate::MissingKey).
    fn has_credentials(&self) -> bool {
        false
    }

    /// Visits the keys of all values, even if conflicting.
    ///
    /// Block lists call `each_key`, so clients cannot hide a listed value, and more than 64 keys block the request. The
    /// default visits the extracted key.
    fn each_key(&self, head: &RequestHead<'_>, visit: &mut dyn FnMut(&Key<'_>)) {
        if let Some(key) = self.extract(head).filter(|key| !key.as_bytes().is_empty()) {
            visit(&key);
        }
    }

    /// Parses an operator's text, for example an API key or an address.
    ///
    /// The default uses the text itself. [`first_of`](super::first_of()) prefers addresses, and [`all`](super::all())
    /// parses no text.
    fn parse(&self, text: &str) -> Option<Key<'static>> {
        (!text.is_empty()).then(|| Key::owned(self.scope(), text))
    }
}

impl fmt::Debug for dyn KeyExtractor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyExtractor({})", self.scope())
    }
}

macro_rules! pointers {
    ($($pointer:ident)+) => {
        $(impl KeyExtractor for $pointer<dyn KeyExtractor> {
            fn scope(&self) -> Name {
                (**self).scope()
            }

            fn extract<'r>(&self, head: &RequestHead<'r>) -> Option<Key<'r>> {
                (**self).extract(head)
            }

            fn has_credentials(&self) -> bool {
                (**self).has_credentials()
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
