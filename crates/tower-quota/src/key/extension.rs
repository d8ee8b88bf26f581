//! Counting by what an outer layer has attached.

use core::fmt;
use core::marker::PhantomData;

use tower_quota_core::{Key, Name};

use super::KeyExtractor;
use crate::head::RequestHead;

/// Counts by something in the request's extensions, such as the user whom an outer layer has authenticated, and what of
/// it tells one from another. It is missing when nothing of that type is there, or the closure reads nothing from it.
///
/// The name says what the keys are; their scope is that name after `extension `. As with [`from_fn`](super::from_fn),
/// two closures of one policy need two names, and up to 38 bytes are kept without an allocation.
///
/// ```
/// use tower_quota::{Limit, Quota, key};
///
/// #[derive(Clone)]
/// struct User {
///     id: u64,
/// }
///
/// let by_user = key::extension("user", |user: &User| user.id.to_be_bytes());
/// let limit = Limit::new("user", Quota::per_minute(100)).by(by_user);
/// # let _ = limit;
/// ```
#[must_use]
pub fn extension<T, F, K>(name: impl Into<Name>, read: F) -> Extension<T, F>
where
    T: Send + Sync + 'static,
    F: Fn(&T) -> K + Send + Sync + 'static,
    K: AsRef<[u8]> + Into<Vec<u8>>,
{
    Extension { scope: Name::from(format!("extension {}", name.into())), read, of: PhantomData }
}

/// The extractor of [`extension`].
pub struct Extension<T, F> {
    scope: Name,
    read: F,
    of: PhantomData<fn(&T)>,
}

impl<T, F, K> KeyExtractor for Extension<T, F>
where
    T: Send + Sync + 'static,
    F: Fn(&T) -> K + Send + Sync + 'static,
    K: AsRef<[u8]> + Into<Vec<u8>>,
{
    fn scope(&self) -> Name {
        self.scope
    }

    fn extract<'r>(&self, head: &RequestHead<'r>) -> Option<Key<'r>> {
        let bytes = (self.read)(head.extensions().get::<T>()?);
        (!bytes.as_ref().is_empty()).then(|| Key::owned(self.scope, bytes))
    }
}

impl<T, F: Clone> Clone for Extension<T, F> {
    fn clone(&self) -> Self {
        Self { scope: self.scope, read: self.read.clone(), of: PhantomData }
    }
}

impl<T, F> fmt::Debug for Extension<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Extension({})", self.scope)
    }
}
