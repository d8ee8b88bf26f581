use std::sync::Arc;

use tower_quota_core::{Key, Name};

use super::all::All;
use super::client_ip::ClientIp;
use super::custom::{ClosureKey, EveryoneKey};
use super::extractor::KeyExtractor;
#[cfg(feature = "jwt")]
use super::jwt::JwtClaim;
use super::parts::{IntoExtractors, Parts, joined_scope};
use super::values::ValueKey;
use crate::head::RequestHead;

/// Counts by the first key that the request has, for example API key or else address.
///
/// Pass a tuple of two to six extractors, or an array or `Vec`.
///
/// ```
/// use tower_quota::{Limit, Quota, key};
///
/// let client = key::first_of((key::header("x-api-key"), key::bearer(), key::client_ip()));
/// let same = key::header("x-api-key").or(key::bearer()).or(key::client_ip());
/// let limit = Limit::new("minute", Quota::per_minute(100)).by(client);
/// # let _ = (limit, same);
/// ```
///
/// A key keeps the scope of `key::header("x-api-key")` alone. If a part has conflicting values, the next part is not
/// tried.
///
/// Check API keys before the layer, or limit by address too, because made-up keys get new counters.
#[must_use]
#[doc(alias = "fallback")]
#[doc(alias = "or_else")]
pub fn first_of(parts: impl IntoExtractors) -> FirstOf {
    let parts = parts.into_extractors();
    FirstOf {
        scope: joined_scope(&parts, " or "),
        parts: Arc::new(parts),
    }
}

/// The extractor of [`first_of`].
#[derive(Clone, Debug)]
pub struct FirstOf {
    scope: Name,
    pub(super) parts: Arc<Parts>,
}

impl KeyExtractor for FirstOf {
    fn scope(&self) -> Name {
        self.scope
    }

    fn extract<'r>(&self, head: &RequestHead<'r>) -> Option<Key<'r>> {
        self.parts.iter().find_map(|part| part.extract(head))
    }

    fn has_credentials(&self) -> bool {
        self.parts.iter().all(|part| part.has_credentials())
    }

    fn each_key(&self, head: &RequestHead<'_>, visit: &mut dyn FnMut(&Key<'_>)) {
        for part in self.parts.iter() {
            part.each_key(head, visit);
        }
    }

    fn parse(&self, text: &str) -> Option<Key<'static>> {
        let mut keys = self.parts.iter().filter_map(|part| part.parse(text));
        let first = keys.next()?;
        // Extractors of text accept every address, so ask the extractors of addresses first.
        if first.to_address().is_some() {
            return Some(first);
        }
        let address = keys.find(|key| key.to_address().is_some());
        Some(address.unwrap_or(first))
    }
}

macro_rules! or {
    ($($extractor:ident)+) => {
        $(impl $extractor {
            /// Falls back to `other` like [`first_of`].
            #[must_use]
            pub fn or(self, other: impl KeyExtractor) -> FirstOf {
                first_of((self, other))
            }
        })+
    };
}

or!(All ClientIp ClosureKey EveryoneKey FirstOf ValueKey);

#[cfg(feature = "jwt")]
or!(JwtClaim);
