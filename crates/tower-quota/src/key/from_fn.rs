//! Counting by whatever a closure reads.

use core::fmt;

use tower_quota_core::{Key, Name};

use super::KeyExtractor;
use crate::head::RequestHead;

/// Keeps the closure `everyone` from being taken for everyone.
pub(crate) const MARK: &str = "fn ";

/// Counts by what a closure makes of the request: text, bytes, the bytes of a number. `None` is a missing key.
///
/// Up to 38 bytes are kept without an allocation. To lend bytes of the request instead, implement [`KeyExtractor`].
///
/// The name says what the keys are. Their [scope](KeyExtractor::scope) is that name after `fn `, so that a closure may be
/// named like an extractor of this module. Two closures of one policy need two names. What is built twice by the same
/// piece of code is one closure: what it has captured must not change its keys.
///
/// ```
/// use tower_quota::{Limit, Quota, key};
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
    FromFn { scope: Name::from(format!("{MARK}{}", name.into())), read }
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
