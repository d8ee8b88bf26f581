use std::collections::HashSet;

use super::condition::Condition;
use crate::head::RequestHead;
use crate::key::KeyExtractor;

/// Matches requests with one of these keys, like API keys or user names.
///
/// For several parts, combine conditions by [`every`](super::every). For addresses, use
/// [`address_in`](super::address_in).
///
/// Conflicting values match in [block lists](crate::Policy::block) and [`Limit::when`](crate::Limit::when), but not in
/// exemptions like [allow lists](crate::Policy::allow). Allow only secret keys.
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
    // An empty key stands for a missing or conflicting key, and matches no client.
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
