//! Conditions on keys.

use std::collections::HashSet;

use super::condition::Condition;
use crate::head::RequestHead;
use crate::key::KeyExtractor;

/// Matches requests whose key is one of these: API keys, user names, or other values.
///
/// Give the text or the bytes that the extractor reads. For keys of several parts, combine conditions by
/// [`every`](super::every); for addresses, use [`address_in`](super::address_in).
///
/// If a request sends conflicting values, one listed value is enough for a [block list](crate::Policy::block) and for
/// [`Limit::when`](crate::Limit::when). For what exempts requests, such as an [allow list](crate::Policy::allow),
/// conflicting values do not match. A client can send any key: allow only keys that are secret.
///
/// ```
/// use tower_quota::{Policy, key, when};
///
/// let policy = Policy::new().block(when::key_in(key::header("x-api-key"), ["leaked-in-march", "leaked-in-may"]));
/// # let _ = policy;
/// ```
#[must_use]
#[doc(alias = "block list")]
#[doc(alias = "deny list")]
#[doc(alias = "allow list")]
pub fn key_in<K: AsRef<[u8]>>(
    extractor: impl KeyExtractor,
    keys: impl IntoIterator<Item = K>,
) -> Box<dyn Condition> {
    let mut listed: HashSet<Box<[u8]>> = keys.into_iter().map(|key| key.as_ref().into()).collect();
    // An empty key is a missing one, or that of conflicting values.
    listed.remove(&[][..]);
    Box::new(move |head: &RequestHead<'_>| {
        if head.holds_in_doubt() {
            let mut found = false;
            extractor.each_key(head, &mut |key| found |= listed.contains(key.as_bytes()));
            return found;
        }
        extractor
            .extract(head)
            .is_some_and(|key| listed.contains(key.as_bytes()))
    })
}
