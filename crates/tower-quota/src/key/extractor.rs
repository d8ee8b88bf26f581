//! The trait of extractors, which read keys from requests.

use core::any::TypeId;
use core::hash::{Hash, Hasher};
use std::hash::DefaultHasher;
use std::sync::Arc;

use tower_quota_core::{Key, Name};

use super::mistake::Mistake;
use crate::head::RequestHead;

/// Reads the key that a request is counted by.
///
/// Implement [`scope`](Self::scope) and [`extract`](Self::extract); the other methods have defaults that suit most
/// extractors. An extractor runs on every request: it must not block and should not allocate. Keys may borrow from the
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
pub trait KeyExtractor: Send + Sync + 'static {
    /// Returns the scope of the keys: a name for the kind of client that they identify.
    ///
    /// Extractors of one scope must make the same keys. A key of [`first_of`](super::first_of()) keeps the scope of the
    /// part that found it.
    fn scope(&self) -> Name;

    /// Returns the key of a request; `None` if it is missing.
    ///
    /// Return `None` instead of an empty key. The extractors of this crate return an empty key for a request with
    /// conflicting values: such requests are refused, or share one counter if the limit refuses no missing key.
    fn extract<'r>(&self, head: &RequestHead<'r>) -> Option<Key<'r>>;

    /// Calls `visit` with every value that the request sends for the key, conflicting ones too.
    ///
    /// Block lists use it, so that a listed value cannot be hidden by another one. The default visits the key.
    fn each_value(&self, head: &RequestHead<'_>, visit: &mut dyn FnMut(&[u8])) {
        if let Some(key) = self.extract(head).filter(|key| !key.as_bytes().is_empty()) {
            visit(key.as_bytes());
        }
    }

    /// Calls `visit` with the key of every [value](Self::each_value) that the request sends.
    ///
    /// The default gives them the [scope](Self::scope). The keys of [`first_of`](super::first_of()) have those of its
    /// parts. For [`all`](super::all()) they are the combinations of its parts' keys, at most 65 of them: blocks by a
    /// handle or by live rules refuse requests that send more than 64 keys for one limit.
    fn each_key(&self, head: &RequestHead<'_>, visit: &mut dyn FnMut(&Key<'_>)) {
        let scope = self.scope();
        self.each_value(head, &mut |value| visit(&Key::new(scope, value)));
    }

    /// Returns the key that an operator names by this text: an API key, a user name, an address.
    ///
    /// The default is the text itself. It is `None` if the text cannot be a key, and for [`all`](super::all()), because
    /// one text cannot name several parts. For [`first_of`](super::first_of()), parts that [count
    /// addresses](Self::counts_addresses) are tried first, then the others in their order.
    fn parse(&self, text: &str) -> Option<Key<'static>> {
        (!text.is_empty()).then(|| Key::owned(self.scope(), text))
    }

    /// Returns whether the keys are addresses and no other text can be [read](Self::parse). The default is `false`.
    fn counts_addresses(&self) -> bool {
        false
    }

    /// Returns the mistake in the server's configuration that this request shows, if any.
    ///
    /// The layer calls it for a request without a key. [`Mistake::NoPeerAddress`] then means that the server made the
    /// mistake, not the client. The default is `None`.
    fn mistake(&self, head: &RequestHead<'_>) -> Option<Mistake> {
        let _ = head;
        None
    }

    /// Returns a number that is equal for extractors that make the same keys, in this process.
    ///
    /// A policy compares it to find different extractors of one scope, which it
    /// [refuses](crate::ConfigError::SharedScope). The default depends on the type only. An extractor with settings
    /// that are not in its scope must [add](identity_of) them.
    fn identity(&self) -> u64 {
        identity_of::<Self>(&())
    }
}

/// Returns the [identity](KeyExtractor::identity) of an extractor of this type with these settings.
#[must_use]
pub fn identity_of<E: ?Sized + 'static>(settings: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    TypeId::of::<E>().hash(&mut hasher);
    settings.hash(&mut hasher);
    hasher.finish()
}

/// Implements the trait for pointers to extractors.
macro_rules! pointers {
    ($($pointer:ident)+) => {
        $(impl<E: KeyExtractor + ?Sized> KeyExtractor for $pointer<E> {
            fn scope(&self) -> Name {
                (**self).scope()
            }

            fn extract<'r>(&self, head: &RequestHead<'r>) -> Option<Key<'r>> {
                (**self).extract(head)
            }

            fn each_value(&self, head: &RequestHead<'_>, visit: &mut dyn FnMut(&[u8])) {
                (**self).each_value(head, visit);
            }

            fn each_key(&self, head: &RequestHead<'_>, visit: &mut dyn FnMut(&Key<'_>)) {
                (**self).each_key(head, visit);
            }

            fn parse(&self, text: &str) -> Option<Key<'static>> {
                (**self).parse(text)
            }

            fn counts_addresses(&self) -> bool {
                (**self).counts_addresses()
            }

            fn mistake(&self, head: &RequestHead<'_>) -> Option<Mistake> {
                (**self).mistake(head)
            }

            fn identity(&self) -> u64 {
                (**self).identity()
            }
        })+
    };
}

pointers!(Box Arc);
