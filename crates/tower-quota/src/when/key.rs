//! Conditions on keys.

use std::collections::HashSet;

use super::Condition;
use crate::head::RequestHead;
use crate::key::KeyExtractor;

/// Holds of requests whose key is one of these: API keys, user names, whatever the extractor reads, as the text or the
/// bytes that it makes a key of. A missing key is none of them, and neither is a doubtful one, such as that of a
/// [header](crate::key::header) with several values: where such keys are blocked, the application should not believe one
/// of the values.
///
/// Keys that are made of several, or of addresses, have bytes of their own making: ask for each part with
/// [`every`](super::every), for addresses with [`address_in`](super::address_in).
///
/// A client can send any key: allow by those that only their owners know.
///
/// ```
/// use tower_quota::{Policy, key, when};
///
/// let policy = Policy::new().block(when::key_in(key::header("x-api-key"), ["leaked-in-march", "leaked-in-may"]));
/// # let _ = policy;
/// ```
#[must_use]
pub fn key_in<K: AsRef<[u8]>>(extractor: impl KeyExtractor, keys: impl IntoIterator<Item = K>) -> Box<dyn Condition> {
    let mut listed: HashSet<Box<[u8]>> = keys.into_iter().map(|key| key.as_ref().into()).collect();
    // It is the key that requests without a key share.
    listed.remove(&[][..]);
    Box::new(move |head: &RequestHead<'_>| extractor.extract(head).is_some_and(|key| listed.contains(key.as_bytes())))
}
