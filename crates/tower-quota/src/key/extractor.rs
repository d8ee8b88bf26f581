//! The seam between requests and keys.

use core::any::TypeId;
use core::hash::{Hash, Hasher};
use std::hash::DefaultHasher;
use std::sync::Arc;

use tower_quota_core::{Key, Name};

use crate::head::RequestHead;

/// Reads from a request who is counted.
///
/// An extractor runs on every request: it should neither block nor allocate. Keys may borrow from the request.
///
/// ```
/// use tower_quota::{Key, Name, RequestHead, key::KeyExtractor};
///
/// /// Counts by the host that the client asked for.
/// struct Host;
///
/// impl KeyExtractor for Host {
///     fn scope(&self) -> Name {
///         const { Name::new("host") }
///     }
///
///     fn extract<'r>(&self, head: &RequestHead<'r>) -> Option<Key<'r>> {
///         Some(Key::new(self.scope(), head.uri().host()?.as_bytes()))
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say who is counted",
    note = "use an extractor of `tower_quota::key`, such as `key::client_ip()` or `key::from_fn(\"tenant\", |head| ..)`"
)]
pub trait KeyExtractor: Send + Sync + 'static {
    /// What the keys are: the scope of every key this makes. Extractors of one scope must make the same keys.
    fn scope(&self) -> Name;

    /// The key of a request; `None` when it has none. An empty key is the one that requests without a key share.
    fn extract<'r>(&self, head: &RequestHead<'r>) -> Option<Key<'r>>;

    /// Returns the key of a client that an operator names by text; `None` if the text cannot be read.
    ///
    /// The text itself, unless the extractor counts by something else, such as addresses.
    fn key_of_text(&self, text: &str) -> Option<Key<'static>> {
        Some(Key::owned(self.scope(), text))
    }

    /// A number for how the keys are made, the same in this process for all extractors that make the same: by it a policy
    /// tells different extractors of one scope, which it [refuses](crate::ConfigError::SharedScope). Unless told otherwise
    /// it stands for the type alone. An extractor with settings that its scope does not name [makes it](identity_of) of
    /// those too; one that only passes on the keys of another, as a `Box` does, answers with that one's.
    fn identity(&self) -> u64 {
        identity_of::<Self>(&())
    }
}

/// The [identity](KeyExtractor::identity) of an extractor of this type with these settings.
#[must_use]
pub fn identity_of<E: ?Sized + 'static>(settings: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    TypeId::of::<E>().hash(&mut hasher);
    settings.hash(&mut hasher);
    hasher.finish()
}

impl<E: KeyExtractor + ?Sized> KeyExtractor for Box<E> {
    fn scope(&self) -> Name {
        (**self).scope()
    }

    fn extract<'r>(&self, head: &RequestHead<'r>) -> Option<Key<'r>> {
        (**self).extract(head)
    }

    fn identity(&self) -> u64 {
        (**self).identity()
    }
}

impl<E: KeyExtractor + ?Sized> KeyExtractor for Arc<E> {
    fn scope(&self) -> Name {
        (**self).scope()
    }

    fn extract<'r>(&self, head: &RequestHead<'r>) -> Option<Key<'r>> {
        (**self).extract(head)
    }

    fn identity(&self) -> u64 {
        (**self).identity()
    }
}
