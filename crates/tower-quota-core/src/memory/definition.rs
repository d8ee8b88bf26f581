//! Limits and their quotas, shared by the rows of a shard.

use std::collections::HashSet;
use std::sync::Arc;

use crate::charge::Counter;
use crate::quota::Quota;

/// Unused definitions that are kept in any case.
const FEW: usize = 8;

/// A limit, and the numbers that count it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Definition {
    /// The number of the limit's name, or of its strikes.
    pub(super) limit: u32,
    /// Reduced, so that quotas that count alike are equal.
    pub(super) quota: Quota,
}

impl Definition {
    /// Returns whether this is the limit of a counter, by a quota that counts alike.
    #[inline]
    pub(super) fn is_of(&self, counter: Counter<'_>) -> bool {
        self.limit == counter.id && self.quota.counts_like(counter.quota)
    }
}

/// The definitions of a shard. Unused definitions are dropped when they outnumber those in use.
#[derive(Default)]
pub(super) struct Definitions {
    known: HashSet<Arc<Definition>>,
    /// Definitions in use when unused ones were dropped last.
    used: usize,
}

impl Definitions {
    /// Returns the definition of a counter.
    pub(super) fn get(&mut self, counter: Counter<'_>) -> Arc<Definition> {
        let definition = Definition {
            limit: counter.id,
            quota: counter.quota.reduced(),
        };
        if let Some(known) = self.known.get(&definition) {
            return Arc::clone(known);
        }
        if self.known.len() >= 2 * self.used + FEW {
            self.known.retain(|known| Arc::strong_count(known) > 1);
            self.used = self.known.len();
        }
        let definition = Arc::new(definition);
        self.known.insert(Arc::clone(&definition));
        definition
    }

    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    /// Returns the bytes of all definitions, each with the counts of its `Arc`, its pointer and a control byte.
    pub(super) fn bytes(&self) -> usize {
        self.len() * (size_of::<Definition>() + 16) + self.known.capacity() * 9
    }
}
