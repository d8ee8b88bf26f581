//! Limits and their quotas, shared by the rows of a shard.

use std::sync::Arc;

use hashbrown::HashTable;

use crate::charge::Counter;
use crate::quota::Quota;

/// Unused definitions that are kept in any case.
const FEW: usize = 8;

/// A limit, and the numbers that count it.
pub(super) struct Definition {
    /// The number of the limit's name, or of its strikes.
    pub(super) limit: u32,
    /// Reduced, so that quotas that count alike are the same.
    pub(super) quota: Quota,
}

impl Definition {
    /// Returns whether this is the limit of a counter, by a quota that counts alike.
    #[inline]
    pub(super) fn is_of(&self, counter: Counter<'_>) -> bool {
        self.limit == counter.id && self.quota.counts_like(counter.quota)
    }
}

/// The definitions of a shard. Rows share them. A definition that no row holds is dropped when many are.
#[derive(Default)]
pub(super) struct Definitions {
    known: HashTable<Arc<Definition>>,
    /// Definitions in use when unused ones were dropped last.
    used: usize,
}

impl Definitions {
    /// Returns the definition of a counter.
    pub(super) fn get(&mut self, counter: Counter<'_>) -> Arc<Definition> {
        let hash = hash_of(counter.id, counter.quota);
        if let Some(known) = self.known.find(hash, |known| known.is_of(counter)) {
            return Arc::clone(known);
        }
        if self.known.len() >= 2 * self.used + FEW {
            self.known.retain(|known| Arc::strong_count(known) > 1);
            self.used = self.known.len();
        }
        let definition = Arc::new(Definition {
            limit: counter.id,
            quota: counter.quota.reduced(),
        });
        self.known
            .insert_unique(hash, Arc::clone(&definition), |known| {
                hash_of(known.limit, &known.quota)
            });
        definition
    }

    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    /// Returns the bytes of all definitions, with the two counts of each `Arc`.
    pub(super) fn bytes(&self) -> usize {
        self.known.allocation_size() + self.len() * (size_of::<Definition>() + 16)
    }
}

/// Returns a hash. Limits and quotas come from configuration, so no client can choose them.
fn hash_of(limit: u32, quota: &Quota) -> u64 {
    let numbers = [
        limit.into(),
        quota.capacity(),
        quota.grain(),
        quota.refill(),
    ];
    numbers.into_iter().fold(0, |hash: u64, number| {
        (hash.rotate_left(25) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    })
}
