//! Keys from closures, and one key for all requests.

use core::fmt;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU64, Ordering};

use tower_quota_core::{Key, Name};

use super::extractor::{KeyExtractor, identity_of};
use super::single::key_of;
use crate::head::RequestHead;

/// The prefix of the scopes of closures: a closure named `everyone` is not [`everyone`].
pub(crate) const CLOSURE_MARK: &str = "fn ";

/// Counts by a value that a closure reads from the request: text, bytes, the bytes of a number.
///
/// `None` or an empty value is a missing key. Up to 38 bytes are stored without an allocation. To borrow bytes of the
/// request instead, implement [`KeyExtractor`].
///
/// The name identifies the keys. Their [scope](KeyExtractor::scope) is `fn ` and this name, so a closure may have the
/// name of an extractor of this module. Different closures of one policy need different names, or the policy
/// [refuses](crate::ConfigError::SharedScope) them. A closure with captures differs from every other closure, even from
/// one that the same line of code makes. To use it for several limits, clone the extractor.
///
/// ```
/// use tower_quota::{Limit, Policy, Quota, key};
///
/// // An outer layer has authenticated the user.
/// #[derive(Clone)]
/// struct User {
///     id: u64,
/// }
///
/// let user = key::from_fn("user id", |head| Some(head.extensions().get::<User>()?.id.to_be_bytes()));
/// let policy = Policy::new()
///     .limit(Limit::new("minute", Quota::per_minute(100)).by(user.clone()))
///     .limit(Limit::new("hour", Quota::per_hour(1_000)).by(user));
/// # let _ = policy;
/// ```
#[must_use]
pub fn from_fn<F, K>(name: impl Into<Name>, read: F) -> FromFnKey<F>
where
    F: Fn(&RequestHead<'_>) -> Option<K> + Send + Sync + 'static,
    K: AsRef<[u8]> + Into<Vec<u8>>,
{
    FromFnKey {
        scope: Name::from(format!("{CLOSURE_MARK}{}", name.into())),
        construction: construction_of(&read),
        read,
    }
}

/// The extractor of [`from_fn`].
#[derive(Clone)]
pub struct FromFnKey<F> {
    scope: Name,
    construction: u64,
    read: F,
}

impl<F, K> KeyExtractor for FromFnKey<F>
where
    F: Fn(&RequestHead<'_>) -> Option<K> + Send + Sync + 'static,
    K: AsRef<[u8]> + Into<Vec<u8>>,
{
    fn scope(&self) -> Name {
        self.scope
    }

    fn extract<'r>(&self, head: &RequestHead<'r>) -> Option<Key<'r>> {
        owned(self.scope, (self.read)(head)?)
    }

    fn identity(&self) -> u64 {
        identity_of::<Self>(&self.construction)
    }
}

impl<F> fmt::Debug for FromFnKey<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FromFnKey({})", self.scope)
    }
}

/// Counts by a value in the request's extensions, such as an authenticated user.
///
/// An outer layer attaches the value, and the closure reads the client's identity from it. The key is missing if there
/// is no value of that type, and if the closure returns `None` or an empty text.
///
/// The name identifies the keys; their scope is `extension ` and this name. As with [`from_fn`], different closures of
/// one policy need different names, and up to 38 bytes are stored without an allocation.
///
/// ```
/// use tower_quota::{Limit, Quota, key};
///
/// #[derive(Clone)]
/// struct User {
///     id: u64,
///     /// `None` for a user of no team.
///     team: Option<String>,
/// }
///
/// let by_user = key::extension("user", |user: &User| Some(user.id.to_be_bytes()));
/// let by_team = key::extension("team", |user: &User| user.team.clone());
/// let limit = Limit::new("team", Quota::per_minute(100)).by(by_team.or(by_user));
/// # let _ = limit;
/// ```
#[must_use]
pub fn extension<T, F, K>(name: impl Into<Name>, read: F) -> ExtensionKey<T, F>
where
    T: Send + Sync + 'static,
    F: Fn(&T) -> Option<K> + Send + Sync + 'static,
    K: AsRef<[u8]> + Into<Vec<u8>>,
{
    let scope = Name::from(format!("extension {}", name.into()));
    ExtensionKey {
        scope,
        construction: construction_of(&read),
        read,
        of: PhantomData,
    }
}

/// The extractor of [`extension`].
pub struct ExtensionKey<T, F> {
    scope: Name,
    construction: u64,
    read: F,
    of: PhantomData<fn(&T)>,
}

impl<T, F, K> KeyExtractor for ExtensionKey<T, F>
where
    T: Send + Sync + 'static,
    F: Fn(&T) -> Option<K> + Send + Sync + 'static,
    K: AsRef<[u8]> + Into<Vec<u8>>,
{
    fn scope(&self) -> Name {
        self.scope
    }

    fn extract<'r>(&self, head: &RequestHead<'r>) -> Option<Key<'r>> {
        owned(self.scope, (self.read)(head.extensions().get::<T>()?)?)
    }

    fn identity(&self) -> u64 {
        identity_of::<Self>(&self.construction)
    }
}

impl<T, F: Clone> Clone for ExtensionKey<T, F> {
    fn clone(&self) -> Self {
        Self {
            scope: self.scope,
            construction: self.construction,
            read: self.read.clone(),
            of: PhantomData,
        }
    }
}

impl<T, F> fmt::Debug for ExtensionKey<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExtensionKey({})", self.scope)
    }
}

/// Returns the key of these bytes, unless they are empty.
fn owned<'r, K: AsRef<[u8]> + Into<Vec<u8>>>(scope: Name, bytes: K) -> Option<Key<'r>> {
    (!bytes.as_ref().is_empty()).then(|| Key::owned(scope, bytes))
}

/// Returns a number that distinguishes closures of one type; 0 for closures without captures.
fn construction_of<F>(closure: &F) -> u64 {
    static CONSTRUCTIONS: AtomicU64 = AtomicU64::new(1);
    if size_of_val(closure) == 0 {
        0
    } else {
        CONSTRUCTIONS.fetch_add(1, Ordering::Relaxed)
    }
}

/// Counts all requests together, in one counter. A limit without a key does this.
#[must_use]
#[doc(alias = "global")]
pub const fn everyone() -> EveryoneKey {
    EveryoneKey(())
}

/// The extractor of [`everyone`].
#[derive(Clone, Copy, Debug)]
pub struct EveryoneKey(());

impl KeyExtractor for EveryoneKey {
    fn scope(&self) -> Name {
        Key::EVERYONE.scope()
    }

    fn extract<'r>(&self, _: &RequestHead<'r>) -> Option<Key<'r>> {
        Some(Key::EVERYONE)
    }

    fn each_key(&self, _: &RequestHead<'_>, visit: &mut dyn FnMut(&Key<'_>)) {
        // An alternative in `first_of`, as which it is not missing although it is empty.
        visit(&Key::EVERYONE);
    }

    fn parse(&self, _: &str) -> Option<Key<'static>> {
        Some(Key::EVERYONE)
    }
}

key_of! {
    [F] FromFnKey<F>;
    [T, F] ExtensionKey<T, F>;
}
