use std::sync::Arc;

use smallvec::SmallVec;
use tower_quota_core::{Key, Name};

use super::extractor::KeyExtractor;
use super::parts::{IntoExtractors, Parts, joined_scope};
use super::values::is_conflict;
use crate::head::RequestHead;

/// The maximum number of keys per extractor. Requests with more keys are blocked.
#[doc(hidden)]
pub const MAX_SENT_KEYS: usize = 64;

/// Counts by several keys together, for example client and route.
///
/// Pass a tuple of two to six extractors, or an array or `Vec`. The order matters.
///
/// ```
/// use tower_quota::{Limit, Quota, key};
///
/// // Note the second pair of parentheses.
/// let limit = Limit::new("methods", Quota::per_minute(60)).by(key::all((key::client_ip(), key::method())));
/// # let _ = limit;
/// ```
///
/// # The key is missing if one part is missing
///
/// To count clients without an API key, use `key::header("x-api-key").or(key::everyone())`. Or skip the limit, and add
/// another:
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
///     // For all clients, with a key or without: made-up keys gain nothing.
///     .limit(Limit::new("address", Quota::per_minute(1_000)).by(key::client_ip()));
/// # let _ = policy;
/// ```
#[must_use]
#[doc(alias = "composite key")]
#[doc(alias = "and")]
pub fn all(parts: impl IntoExtractors) -> All {
    let parts = parts.into_extractors();
    All {
        scope: joined_scope(&parts, " + "),
        parts: Arc::new(parts),
    }
}

/// The extractor of [`all`].
#[derive(Clone, Debug)]
pub struct All {
    scope: Name,
    pub(super) parts: Arc<Parts>,
}

impl All {
    /// Combines the parts' keys, in order.
    ///
    /// ```
    /// use tower_quota::key;
    ///
    /// let (user, method) = (key::header("x-user"), key::method());
    /// let both = key::all((user.clone(), method.clone()));
    /// let key = both.key_of([&user.key_of("ann"), &method.key_of("GET")]);
    /// # let _ = key;
    /// ```
    pub fn key_of<'k, 'b: 'k>(&self, parts: impl IntoIterator<Item = &'k Key<'b>>) -> Key<'static> {
        Key::joined(self.scope, parts)
    }
}

fn sent_keys(part: &dyn KeyExtractor, head: &RequestHead<'_>) -> Vec<Key<'static>> {
    let mut keys = Vec::new();
    let mut add = |key: &Key<'_>| {
        if keys.len() <= MAX_SENT_KEYS && !keys.contains(key) {
            keys.push(key.to_static());
        }
    };
    part.each_key(head, &mut add);
    // `each_key` skips empty keys, even of `everyone`.
    part.extract(head).iter().for_each(add);
    keys
}

impl KeyExtractor for All {
    fn scope(&self) -> Name {
        self.scope
    }

    fn extract<'r>(&self, head: &RequestHead<'r>) -> Option<Key<'r>> {
        let keys: SmallVec<[Key<'_>; 4]> = self
            .parts
            .iter()
            .map(|part| part.extract(head))
            .collect::<Option<_>>()?;
        if keys.iter().any(is_conflict) {
            return Some(Key::new(self.scope, &[]));
        }
        Some(self.key_of(&keys))
    }

    fn has_credentials(&self) -> bool {
        self.parts.iter().any(|part| part.has_credentials())
    }

    /// Visits the combinations of keys, at most one above the maximum.
    fn each_key(&self, head: &RequestHead<'_>, visit: &mut dyn FnMut(&Key<'_>)) {
        let mut combinations = vec![Vec::new()];
        for part in self.parts.iter() {
            let keys = sent_keys(&**part, head);
            let longer = combinations.iter().flat_map(|combination| {
                keys.iter()
                    .map(move |key| combination.iter().chain([key]).cloned().collect::<Vec<_>>())
            });
            combinations = longer.take(MAX_SENT_KEYS + 1).collect();
        }
        combinations
            .iter()
            .for_each(|combination| visit(&self.key_of(combination)));
    }

    fn parse(&self, _: &str) -> Option<Key<'static>> {
        None
    }
}
