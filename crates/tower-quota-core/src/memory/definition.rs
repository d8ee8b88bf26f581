//! Limits and their quotas, shared by the rows of a shard.

use std::sync::Arc;

use hashbrown::HashSet;

use super::row::Definition;
use crate::charge::Counter;

const FEW: usize = 8;

/// The definitions of a shard. Unused definitions are dropped when they outnumber those in use.
#[derive(Default)]
pub(super) struct Definitions {
    // A fast hash is enough, because clients cannot choose limits and quotas.
    known: HashSet<Arc<Definition>>,
    used: usize,
}

impl Definitions {
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

    pub(super) fn bytes(&self) -> usize {
        self.len() * (size_of::<Definition>() + 16) + self.known.capacity() * 9
    }
}
