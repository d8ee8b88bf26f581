//! Indexes key patterns, in order.

use std::collections::{BTreeSet, HashMap};

use foldhash::quality::RandomState;

use crate::text::KeyPattern;

/// An index of patterns by their literal prefix. A look-up needs a hash for every length of a
/// prefix.
#[derive(Default)]
pub(crate) struct KeyPatterns {
    patterns: Vec<KeyPattern>,
    positions: HashMap<Vec<u8>, Vec<usize>, RandomState>,
    lengths: BTreeSet<usize>,
}

impl KeyPatterns {
    const MOST_COMPARED: usize = 100;

    pub(crate) fn push(&mut self, pattern: &KeyPattern) {
        let (prefix, _) = pattern.literal_prefix();
        self.lengths.insert(prefix.len());
        let positions = self.positions.entry(prefix).or_default();
        positions.push(self.patterns.len());
        self.patterns.push(pattern.clone());
    }

    pub(crate) fn first(&self, key: &[u8]) -> Option<usize> {
        let matches = |at: &&usize| self.patterns[**at].matches(key);
        let first_of_each = self
            .candidates(key)
            .filter_map(|all| all.iter().find(matches));
        first_of_each.min().copied()
    }

    /// Returns a pattern that matches every key of `other`, if it is found quickly.
    pub(crate) fn covering(&self, other: &KeyPattern) -> Option<&KeyPattern> {
        let (prefix, _) = other.literal_prefix();
        let few = self
            .candidates(&prefix)
            .flat_map(|all| all.iter().take(Self::MOST_COMPARED));
        let mut patterns = few.map(|at| &self.patterns[*at]);
        patterns.find(|pattern| pattern.covers(other))
    }

    fn candidates(&self, text: &[u8]) -> impl Iterator<Item = &Vec<usize>> {
        let lengths = self.lengths.range(..=text.len());
        lengths.filter_map(|length| self.positions.get(&text[..*length]))
    }
}
