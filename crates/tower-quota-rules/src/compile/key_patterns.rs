//! The index of patterns of keys, in order.

use std::collections::{BTreeSet, HashMap};

use foldhash::quality::RandomState;

use crate::text::KeyPattern;

/// Patterns by their literal beginnings. A look-up takes one hash for each length of a beginning.
#[derive(Debug, Default)]
pub(crate) struct KeyPatterns {
    patterns: Vec<KeyPattern>,
    /// The positions of the patterns with this beginning.
    positions: HashMap<Vec<u8>, Vec<usize>, RandomState>,
    lengths: BTreeSet<usize>,
}

impl KeyPatterns {
    /// Adds a pattern behind all others.
    pub(crate) fn push(&mut self, pattern: &KeyPattern) {
        let (prefix, _) = pattern.literal_prefix();
        self.lengths.insert(prefix.len());
        let positions = self.positions.entry(prefix).or_default();
        positions.push(self.patterns.len());
        self.patterns.push(pattern.clone());
    }

    /// Returns the position of the first pattern that matches a key.
    pub(crate) fn first(&self, key: &[u8]) -> Option<usize> {
        let lengths = self.lengths.range(..=key.len());
        let positions = lengths.filter_map(|length| self.positions.get(&key[..*length]));
        let matches = |at: &&usize| self.patterns[**at].matches(key);
        let first_of_each = positions.filter_map(|positions| positions.iter().find(matches));
        first_of_each.min().copied()
    }
}
