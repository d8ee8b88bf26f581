use core::time::Duration;
use std::collections::HashMap;
use std::hash::BuildHasher;

use tower_quota_core::{Key, Name, Timestamp};

use super::Check;

/// During a rolling deploy, instances with the old and the new quota take turns for some minutes.
const MIN_SPAN: Duration = Duration::from_secs(600);
const MAX_SPAN: Duration = Duration::from_secs(3_600);
const MAX_KEYS: u64 = 256;

/// Counts how often the store converts the counter of a key to the quota of this process.
///
/// A second conversion proves that the counter had another quota in between. The keys are a sample, and each key stays
/// for an hour.
#[derive(Default)]
pub(super) struct Turns(HashMap<u64, Conversions>);

#[derive(Clone, Copy)]
struct Conversions {
    hash: u64,
    first: Timestamp,
    count: u64,
}

impl Turns {
    /// Counts a conversion. Returns whether the key now shows the mistake.
    pub(super) fn prove(&mut self, limit: Name, key: &Key<'_>, at: Timestamp) -> bool {
        let counted = (limit, key.scope(), key.as_bytes());
        let hash = self.0.hasher().hash_one(counted);
        let (first, count) = (at, 0);
        let new = Conversions { hash, first, count };
        let known = self.0.entry(hash % MAX_KEYS).or_insert(new);
        if at.since(known.first) >= MAX_SPAN {
            *known = new;
        }
        let may_prove = at.since(known.first) >= MIN_SPAN;
        let is_early = known.count + 1 == Check::QuotasInTurn.threshold() && !may_prove;
        if known.hash != hash || is_early {
            return false;
        }
        known.count += 1;
        known.count == Check::QuotasInTurn.threshold()
    }
}
