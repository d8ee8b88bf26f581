//! Counting by several things together.

use core::fmt;

use smallvec::SmallVec;
use tower_quota_core::{Key, Name};

use super::{KeyExtractor, identity_of};
use crate::head::RequestHead;

/// Counts by several things together: each client on each route, each user by each method. Extractors of different types
/// go into a tuple, two to six of them; those of one type, such as `Box<dyn KeyExtractor>`, also into an array or a
/// `Vec`. The order of the parts matters: `(a, b)` and `(b, a)` are different subjects.
///
/// ```
/// use tower_quota::{Limit, Quota, key};
///
/// // Mind the second pair of parentheses.
/// let limit = Limit::new("methods", Quota::per_minute(60)).by(key::all((key::client_ip(), key::method())));
/// # let _ = limit;
/// ```
///
/// # One part missing is all missing
///
/// The key is missing when one of its parts is, however well the others are known. By default all such requests share
/// one counter, *whatever their addresses*: counted by address and API key, everybody who sends no API key is in one
/// bucket, and one of them can empty it for the others. Where that is not meant, skip such requests and give them a limit
/// of their own:
///
/// ```
/// use tower_quota::{Limit, MissingKey, Policy, Quota, key};
///
/// let policy = Policy::new()
///     .limit(
///         Limit::new("keyed", Quota::per_minute(600))
///             .by(key::all((key::client_ip(), key::header("x-api-key"))))
///             .when_missing(MissingKey::Skip),
///     )
///     // For everybody, with a key or without: made-up keys buy nothing.
///     .limit(Limit::new("address", Quota::per_minute(1_000)).by(key::client_ip()));
/// # let _ = policy;
/// ```
#[must_use]
pub fn all(parts: impl IntoExtractors) -> All {
    let parts = parts.into_extractors();
    let scopes: Vec<&str> = parts.iter().map(|part| part.scope().as_str()).collect();
    // The parentheses keep nested combinations apart.
    All { scope: Name::from(format!("({})", scopes.join(" + "))), parts }
}

/// The extractor of [`all`].
pub struct All {
    scope: Name,
    parts: Vec<Box<dyn KeyExtractor>>,
}

impl KeyExtractor for All {
    fn scope(&self) -> Name {
        self.scope
    }

    fn extract<'r>(&self, head: &RequestHead<'r>) -> Option<Key<'r>> {
        let keys: SmallVec<[Key<'_>; 4]> = self.parts.iter().map(|part| part.extract(head)).collect::<Option<_>>()?;
        Some(Key::joined(self.scope, &keys))
    }

    fn identity(&self) -> u64 {
        let parts: Vec<u64> = self.parts.iter().map(KeyExtractor::identity).collect();
        identity_of::<Self>(&parts)
    }
}

impl fmt::Debug for All {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "All({})", self.scope)
    }
}

/// What [`all`] takes: several extractors.
pub trait IntoExtractors {
    /// The extractors, in order.
    fn into_extractors(self) -> Vec<Box<dyn KeyExtractor>>;
}

impl<E: KeyExtractor> IntoExtractors for Vec<E> {
    fn into_extractors(self) -> Vec<Box<dyn KeyExtractor>> {
        self.into_iter().map(|extractor| Box::new(extractor) as Box<dyn KeyExtractor>).collect()
    }
}

impl<E: KeyExtractor, const N: usize> IntoExtractors for [E; N] {
    fn into_extractors(self) -> Vec<Box<dyn KeyExtractor>> {
        Vec::from(self).into_extractors()
    }
}

macro_rules! tuples {
    ($($part:ident)+) => {
        impl<$($part: KeyExtractor),+> IntoExtractors for ($($part,)+) {
            fn into_extractors(self) -> Vec<Box<dyn KeyExtractor>> {
                #[expect(non_snake_case, reason = "the parts are named after their types")]
                let ($($part,)+) = self;
                vec![$(Box::new($part)),+]
            }
        }
    };
}

tuples!(A B);
tuples!(A B C);
tuples!(A B C D);
tuples!(A B C D E);
tuples!(A B C D E F);
