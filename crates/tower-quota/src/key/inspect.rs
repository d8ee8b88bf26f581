//! Inspects extractors, even inside combinations.

use core::any::Any;
use core::hash::{Hash, Hasher};
use std::hash::DefaultHasher;
use std::sync::Arc;

use tower_quota_core::Name;

use super::all::All;
use super::client_ip::ClientIp;
use super::custom::{ClosureKey, EveryoneKey};
use super::extractor::KeyExtractor;
use super::first_of::FirstOf;
#[cfg(feature = "jwt")]
use super::jwt::JwtClaim;
use super::mistake::Mistake;
use super::named::NamedKey;
use super::values::is_conflict;
use crate::head::RequestHead;

/// Returns a number that differs between extractors with one scope but different keys.
pub(crate) fn identity(extractor: &dyn KeyExtractor) -> u64 {
    let any: &dyn Any = extractor;
    if let Some(inner) = pointee(any) {
        return identity(inner);
    }
    let mut hasher = DefaultHasher::new();
    any.type_id().hash(&mut hasher);
    if let Some(closure) = any.downcast_ref::<ClosureKey>() {
        closure.identity.hash(&mut hasher);
    }
    if let Some(client) = any.downcast_ref::<ClientIp>() {
        client.proxies().hash(&mut hasher);
    }
    #[cfg(feature = "jwt")]
    if let Some(claim) = any.downcast_ref::<JwtClaim>() {
        claim.hash_keys(&mut hasher);
    }
    for part in parts(any) {
        identity(part).hash(&mut hasher);
    }
    hasher.finish()
}

/// Returns whether all requests have the same key.
pub(crate) fn is_everyone(extractor: &dyn KeyExtractor) -> bool {
    let any: &dyn Any = extractor;
    match pointee(any) {
        Some(inner) => is_everyone(inner),
        None => any.is::<EveryoneKey>(),
    }
}

/// Returns whether the key needs the peer address, which the server did not attach.
pub(crate) fn lacks_address(extractor: &dyn KeyExtractor, head: &RequestHead<'_>) -> bool {
    let any: &dyn Any = extractor;
    let client = any.downcast_ref::<ClientIp>();
    client.is_some_and(|client| client.mistake(head) == Some(Mistake::NoPeerAddress))
        || parts(any).into_iter().any(|part| lacks_address(part, head))
}

/// Returns the scope of the part that a request lacks, or that has conflicting values.
pub(crate) fn missing_scope(extractor: &dyn KeyExtractor, head: &RequestHead<'_>) -> Name {
    let any: &dyn Any = extractor;
    if let Some(inner) = pointee(any) {
        return missing_scope(inner, head);
    }
    let is_missing = |part: &&dyn KeyExtractor| part.extract(head).is_none();
    let has_conflict =
        |part: &&dyn KeyExtractor| part.extract(head).is_some_and(|key| is_conflict(&key));
    let parts = parts(any);
    let mut found = None;
    if any.is::<All>() {
        found = parts.iter().find(|part| is_missing(part));
    }
    if any.is::<All>() || any.is::<FirstOf>() {
        found = found.or_else(|| parts.iter().find(|part| has_conflict(part)));
    }
    found.map_or_else(|| extractor.scope(), |part| missing_scope(*part, head))
}

fn parts(any: &dyn Any) -> Vec<&dyn KeyExtractor> {
    if let Some(inner) = pointee(any) {
        return vec![inner];
    }
    #[cfg(feature = "jwt")]
    if let Some(claim) = any.downcast_ref::<JwtClaim>() {
        return vec![&*claim.token];
    }
    let all = any.downcast_ref::<All>().map(|all| &*all.parts);
    let parts = all.or_else(|| any.downcast_ref::<FirstOf>().map(|first| &*first.parts));
    parts.into_iter().flatten().map(|part| &**part).collect()
}

fn pointee(any: &dyn Any) -> Option<&dyn KeyExtractor> {
    if let Some(boxed) = any.downcast_ref::<Box<dyn KeyExtractor>>() {
        return Some(&**boxed);
    }
    if let Some(named) = any.downcast_ref::<NamedKey>() {
        return Some(&*named.key);
    }
    let shared = any.downcast_ref::<Arc<dyn KeyExtractor>>()?;
    Some(&**shared)
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use http::Request;

    use super::lacks_address;
    use crate::head::RequestHead;
    use crate::key::{KeyExtractor, all, bearer, client_ip, method};

    #[test]
    fn combination_lacks_the_address_of_a_part() {
        let direct = Request::new(());
        let mut connected = Request::new(());
        connected
            .extensions_mut()
            .insert(IpAddr::from([10, 0, 0, 1]));
        for by in [
            Box::new(all((bearer(), client_ip()))) as Box<dyn KeyExtractor>,
            Box::new(bearer().or(client_ip())),
            Box::new(all((method(), bearer().or(client_ip())))),
        ] {
            assert!(lacks_address(&by, &RequestHead::of(&direct)));
            assert!(!lacks_address(&by, &RequestHead::of(&connected)));
        }
        assert!(!lacks_address(&bearer(), &RequestHead::of(&direct)));
    }
}
