use core::any::TypeId;
use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use tower_quota_core::{Key, Name};

use super::extractor::KeyExtractor;
use crate::head::RequestHead;

/// Begins the scopes of closures, so that a closure named `everyone` differs from [`everyone`].
pub(super) const CLOSURE_MARK: &str = "fn ";
pub(super) const EXTENSION_MARK: &str = "extension ";

/// Counts by text or bytes that your closure reads from the request.
///
/// ```
/// use tower_quota::{Limit, Policy, Quota, key};
///
/// // Return an owned value. To borrow from the request, implement `KeyExtractor`.
/// let tenant = key::from_fn("tenant", |head| head.uri().host().map(String::from));
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
///     .limit(Limit::new("hour", Quota::per_hour(1_000)).by(user))
///     .limit(Limit::new("tenant", Quota::per_hour(9_000)).by(tenant));
/// # let _ = policy;
/// ```
///
/// Return `None` or an empty value if the key is missing.
///
/// The [scope](KeyExtractor::scope) is `fn ` and the name. A policy [refuses](crate::ConfigError::SharedScope)
/// different closures with one name. To share a closure with captures, clone the extractor.
#[must_use]
pub fn from_fn<F, K>(name: impl Into<Name>, read: F) -> ClosureKey
where
    F: Fn(&RequestHead<'_>) -> Option<K> + Send + Sync + 'static,
    K: AsRef<[u8]> + Into<Vec<u8>>,
{
    let identity = identity_of(&read);
    closure_key(format!("{CLOSURE_MARK}{}", name.into()), identity, read)
}

/// Counts by a request extension, for example an authenticated user.
///
/// Works like [`from_fn`], with the scope `extension ` and the name. Without the extension, the key is missing.
///
/// ```
/// use tower_quota::{Limit, Quota, key};
///
/// #[derive(Clone)]
/// struct User {
///     id: u64,
///     /// `None` for a user without a team.
///     team: Option<String>,
/// }
///
/// let by_user = key::extension("user", |user: &User| Some(user.id.to_be_bytes()));
/// let by_team = key::extension("team", |user: &User| user.team.clone());
/// let limit = Limit::new("team", Quota::per_minute(100)).by(by_team.or(by_user));
/// # let _ = limit;
/// ```
#[must_use]
pub fn extension<T, F, K>(name: impl Into<Name>, read: F) -> ClosureKey
where
    T: Send + Sync + 'static,
    F: Fn(&T) -> Option<K> + Send + Sync + 'static,
    K: AsRef<[u8]> + Into<Vec<u8>>,
{
    let identity = identity_of(&read);
    let read = move |head: &RequestHead<'_>| read(head.extensions().get::<T>()?);
    closure_key(format!("{EXTENSION_MARK}{}", name.into()), identity, read)
}

fn closure_key<F, K>(scope: String, identity: (TypeId, u64), read: F) -> ClosureKey
where
    F: Fn(&RequestHead<'_>) -> Option<K> + Send + Sync + 'static,
    K: AsRef<[u8]> + Into<Vec<u8>>,
{
    let scope = Name::from(scope);
    let read = move |head: &RequestHead<'_>| {
        let bytes = read(head)?;
        (!bytes.as_ref().is_empty()).then(|| Key::owned(scope, bytes))
    };
    ClosureKey {
        scope,
        identity,
        read: Arc::new(read),
    }
}

type Read = dyn Fn(&RequestHead<'_>) -> Option<Key<'static>> + Send + Sync;

/// The extractor of [`from_fn`] and [`extension`].
#[derive(Clone)]
pub struct ClosureKey {
    scope: Name,
    pub(super) identity: (TypeId, u64),
    read: Arc<Read>,
}

impl ClosureKey {
    /// Returns the key of this value.
    pub fn key_of(&self, value: impl AsRef<[u8]> + Into<Vec<u8>>) -> Key<'static> {
        Key::owned(self.scope, value)
    }
}

impl KeyExtractor for ClosureKey {
    fn scope(&self) -> Name {
        self.scope
    }

    fn extract<'r>(&self, head: &RequestHead<'r>) -> Option<Key<'r>> {
        (self.read)(head)
    }
}

impl fmt::Debug for ClosureKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClosureKey({})", self.scope)
    }
}

/// Returns the type, with a new number for a closure with captures.
fn identity_of<F: 'static>(closure: &F) -> (TypeId, u64) {
    static CLOSURES: AtomicU64 = AtomicU64::new(1);
    let number = if size_of_val(closure) == 0 {
        0
    } else {
        CLOSURES.fetch_add(1, Ordering::Relaxed)
    };
    (TypeId::of::<F>(), number)
}

/// Counts all requests together, like a limit without a key.
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
        // Unlike other empty keys, `everyone` matches in `first_of`.
        visit(&Key::EVERYONE);
    }

    fn parse(&self, _: &str) -> Option<Key<'static>> {
        Some(Key::EVERYONE)
    }
}
