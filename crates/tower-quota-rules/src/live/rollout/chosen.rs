//! The choice of the clients that a candidate decides.

use std::sync::Arc;

use tower_quota::key::KeyExtractor;
use tower_quota::{Key, Policy, RequestHead};

/// The seed of the hash that chooses clients for a roll-out: the same on all instances, and for all roll-outs, so that
/// a larger percentage has the clients of a smaller one.
const ROLLOUT_SEED: [u8; 16] = *b"quota: roll-outs";

/// Returns the key by which clients are chosen: the first that a limit counts by.
pub(crate) fn client_key(policy: &Policy) -> Option<Arc<dyn KeyExtractor>> {
    policy
        .keys()
        .into_iter()
        .find(|key| key.scope() != Key::EVERYONE.scope())
}

/// Returns whether a request's client is among this percentage. Requests without a key, or with several, are not.
pub(crate) fn is_chosen(by: &dyn KeyExtractor, head: &RequestHead<'_>, percent: u8) -> bool {
    let key = by.extract(head).filter(|key| !key.as_bytes().is_empty());
    key.is_some_and(|key| key.digest(&ROLLOUT_SEED) % 100 < u128::from(percent))
}
