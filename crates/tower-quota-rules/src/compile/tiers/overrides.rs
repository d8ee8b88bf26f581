//! Finds overrides by key. Equal overrides share memory.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use foldhash::quality::RandomState;

use super::Grant;

type ByKey = HashMap<Box<[u8]>, Arc<Grant>, RandomState>;

#[derive(Default)]
pub(super) struct Overrides {
    /// The keys by part. All parts with texts share a map.
    by_part: HashMap<Option<usize>, ByKey, RandomState>,
    shared: HashSet<Arc<Grant>>,
}

impl Overrides {
    /// Adds an override. Returns false if the key has an override already.
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

    pub(super) fn find(&self, part: Option<usize>, key: &[u8]) -> Option<&Grant> {
        Some(self.by_part.get(&part)?.get(key)?)
    }
}
