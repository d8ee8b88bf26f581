//! Counting by whatever a closure reads.

use core::fmt;

use tollgate_core::{Key, Name};

use super::KeyExtractor;
use crate::head::RequestHead;

/// Counts by what a closure makes of the request: text, bytes, the bytes of a number. `None` is a missing key.
///
/// Up to 38 bytes are kept without an allocation. To lend bytes of the request instead, implement [`KeyExtractor`].
/// The name says what the keys are; two closures with one name are one subject (see the [module](crate::key)).
///
/// ```
/// use tollgate::{Limit, Quota, key};
///
/// #[derive(Clone)]
/// struct User {
///     id: u64,
/// }
///
/// // An outer layer has authenticated the user.
/// let limit = Limit::new("user", Quota::per_minute(100))
///     .by(key::from_fn("user id", |head| Some(head.extensions().get::<User>()?.id.to_be_bytes())));
/// # let _ = limit;
/// ```
#[must_use]
pub fn from_fn<F, K>(name: impl Into<Name>, read: F) -> FromFn<F>
where
    F: Fn(&RequestHead<'_>) -> Option<K> + Send + Sync + 'static,
    K: AsRef<[u8]> + Into<Vec<u8>>,
{
    FromFn { scope: name.into(), read }
}

/// The extractor of [`from_fn`].
#[derive(Clone)]
pub struct FromFn<F> {
    scope: Name,
    read: F,
}

impl<F, K> KeyExtractor for FromFn<F>
where
    F: Fn(&RequestHead<'_>) -> Option<K> + Send + Sync + 'static,
    K: AsRef<[u8]> + Into<Vec<u8>>,
{
    fn scope(&self) -> Name {
        self.scope
    }

    fn extract<'r>(&self, head: &RequestHead<'r>) -> Option<Key<'r>> {
        (self.read)(head).map(|bytes| Key::owned(self.scope, bytes))
    }
}

impl<F> fmt::Debug for FromFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FromFn({})", self.scope)
    }
}
