//! Keys with alternatives.

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

/// Counts by the first of these keys that the request has, such as API key, else address.
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
/// A key keeps the scope of the part that found it: a limit by `key::header("x-api-key")` counts the same clients. The
/// key is missing only if all parts are missing. A part with conflicting values is not missing: such requests share one
/// counter, and the next part is not tried.
///
/// A client that can choose between parts has a counter for each. With API key, else address, one address has as many
/// counters as made-up API keys. Check API keys before this layer, or limit by address too.
#[must_use]
#[doc(alias = "fallback")]
#[doc(alias = "or_else")]
pub fn first_of(parts: impl IntoExtractors) -> FirstOf {
    let parts = Parts(parts.into_extractors());
    // The parentheses make the scopes of nested combinations distinct.
    FirstOf {
        scope: Name::from(format!("({})", parts.scopes(" or "))),
        parts,
    }
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
        self.parts
            .0
            .iter()
            .for_each(|part| part.each_value(head, visit));
    }

    fn each_key(&self, head: &RequestHead<'_>, visit: &mut dyn FnMut(&Key<'_>)) {
        self.parts
            .0
            .iter()
            .for_each(|part| part.each_key(head, visit));
    }

    fn parse(&self, text: &str) -> Option<Key<'static>> {
        // Every other part would read an address as one of its keys.
        let parts = |of_addresses| {
            self.parts
                .0
                .iter()
                .filter(move |part| part.counts_addresses() == of_addresses)
        };
        parts(true)
            .chain(parts(false))
            .find_map(|part| part.parse(text))
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

/// Adds the method [`or`](Self::or) to your extractors and to boxes.
///
/// The extractors of this crate have it as an inherent method.
pub trait KeyExtractorExt: KeyExtractor + Sized {
    /// Counts by this key, or by the other if this one is missing: see [`first_of`].
    #[must_use]
    fn or(self, other: impl KeyExtractor) -> FirstOf {
        first_of((self, other))
    }
}

impl<E: KeyExtractor> KeyExtractorExt for E {}

/// Adds the method `or` to extractors, so that users need not import a trait.
macro_rules! or {
    ($([$($generics:tt)*] $extractor:ty;)+) => {
        $(impl<$($generics)*> $extractor where Self: KeyExtractor {
            /// Counts by this key, or by the other if this one is missing: see [`first_of`].
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
