//! Counting by the first key that is there.

use core::fmt;

use tower_quota_core::{Key, Name};

use super::all::All;
use super::authorization::{BasicUserKey, BearerKey};
use super::client_ip::ClientIp;
use super::custom::{EveryoneKey, ExtensionKey, FromFnKey};
use super::extractor::{KeyExtractor, identity_of};
use super::grpc::{GrpcMethodKey, GrpcServiceKey, MetadataKey};
use super::header::{CookieKey, HeaderKey};
#[cfg(feature = "jwt")]
use super::jwt::JwtClaim;
#[cfg(feature = "axum")]
use super::matched::{PathParameterKey, RouteKey};
use super::mistake::Mistake;
use super::parts::{IntoExtractors, Parts};
use super::uri::{HostKey, MethodKey, PathKey, PathSegmentKey, QueryKey};
use crate::head::RequestHead;

/// Counts by the first of these keys that the request has: by API key, else by address.
///
/// Extractors of different types go into a tuple, two to six of them; those of one type also into an array or a `Vec`.
/// For two, `a.or(b)` is the same.
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
/// A key keeps the scope of the part that found it: a limit by `key::header("x-api-key")` counts the same clients. Only
/// when all parts are missing the key is missing. A part whose values conflict is there: such requests share one counter,
/// and do not go on to the next part.
///
/// A client who may choose between parts has a counter for each: by API key, else by address, a client of one address has
/// as many counters as it makes up keys. Check API keys before this layer, or limit by address too.
#[must_use]
#[doc(alias = "fallback")]
#[doc(alias = "or_else")]
pub fn first_of(parts: impl IntoExtractors) -> FirstOf {
    let parts = Parts(parts.into_extractors());
    // The parentheses keep nested combinations apart.
    FirstOf { scope: Name::from(format!("({})", parts.scopes(" or "))), parts }
}

/// The extractor of [`first_of`].
pub struct FirstOf {
    scope: Name,
    parts: Parts,
}

impl KeyExtractor for FirstOf {
    fn scope(&self) -> Name {
        self.scope
    }

    fn extract<'r>(&self, head: &RequestHead<'r>) -> Option<Key<'r>> {
        self.parts.0.iter().find_map(|part| part.extract(head))
    }

    fn each_value(&self, head: &RequestHead<'_>, visit: &mut dyn FnMut(&[u8])) {
        self.parts.0.iter().for_each(|part| part.each_value(head, visit));
    }

    fn parse(&self, text: &str) -> Option<Key<'static>> {
        // Every other part would take an address for a key of its own.
        let parts = |of_addresses| self.parts.0.iter().filter(move |part| part.counts_addresses() == of_addresses);
        parts(true).chain(parts(false)).find_map(|part| part.parse(text))
    }

    fn mistake(&self, head: &RequestHead<'_>) -> Option<Mistake> {
        self.parts.mistake(head)
    }

    fn identity(&self) -> u64 {
        identity_of::<Self>(&self.parts.identities())
    }
}

impl fmt::Debug for FirstOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FirstOf({})", self.scope)
    }
}

/// Adds [`or`](Self::or) to extractors of your own and to boxes. The extractors of this crate have it as a method.
pub trait KeyExtractorExt: KeyExtractor + Sized {
    /// Counts by this key, or by the other where this one is missing: see [`first_of`].
    #[must_use]
    fn or(self, other: impl KeyExtractor) -> FirstOf {
        first_of((self, other))
    }
}

impl<E: KeyExtractor> KeyExtractorExt for E {}

/// Gives extractors the method `or`, so that no trait has to be imported for it.
macro_rules! or {
    ($([$($generics:tt)*] $extractor:ty;)+) => {
        $(impl<$($generics)*> $extractor where Self: KeyExtractor {
            /// Counts by this key, or by the other where this one is missing: see [`first_of`].
            #[must_use]
            pub fn or(self, other: impl KeyExtractor) -> FirstOf {
                first_of((self, other))
            }
        })+
    };
}

or! {
    [] All;
    [] BasicUserKey;
    [] BearerKey;
    [] ClientIp;
    [] CookieKey;
    [] EveryoneKey;
    [T, F] ExtensionKey<T, F>;
    [] FirstOf;
    [F] FromFnKey<F>;
    [] GrpcMethodKey;
    [] GrpcServiceKey;
    [] HeaderKey;
    [] HostKey;
    [] MetadataKey;
    [] MethodKey;
    [] PathKey;
    [] PathSegmentKey;
    [] QueryKey;
}

#[cfg(feature = "axum")]
or! {
    [] PathParameterKey;
    [] RouteKey;
}

#[cfg(feature = "jwt")]
or! {
    [] JwtClaim;
}
