//! Overrides of single keys.
//!
//! A key is stored once, as its bytes. Keys with the same tier and quotas share them.

use core::fmt;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use foldhash::quality::RandomState;

use super::Grant;

type ByKey = HashMap<Box<[u8]>, Arc<Grant>, RandomState>;

/// The overrides by key.
#[derive(Default)]
pub(super) struct Overrides {
    /// The keys that a part finds. `None` stands for all parts that find texts.
    by_part: HashMap<Option<usize>, ByKey, RandomState>,
    shared: HashSet<Arc<Grant>>,
}

impl Overrides {
    /// Adds the override of a key that this part finds.
    ///
    /// Returns false if another text has named this key.
    pub(super) fn insert(&mut self, part: Option<usize>, key: &[u8], grant: Grant) -> bool {
        let keys = self.by_part.entry(part).or_default();
        let Entry::Vacant(entry) = keys.entry(key.into()) else {
            return false;
        };
        let shared = match self.shared.get(&grant) {
            Some(shared) => Arc::clone(shared),
            None => Arc::new(grant),
        };
        self.shared.insert(Arc::clone(&shared));
        entry.insert(shared);
        true
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_part.is_empty()
    }

    /// Returns the tier and the quotas of a key that this part found.
    pub(super) fn find(&self, part: Option<usize>, key: &[u8]) -> Option<&Grant> {
        Some(self.by_part.get(&part)?.get(key)?)
    }
}

impl fmt::Debug for Overrides {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Overrides({})", self.shared.len())
    }
}
