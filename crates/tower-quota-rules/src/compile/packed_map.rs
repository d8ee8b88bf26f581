//! A map of many byte strings, which is built once and found with few cache misses.
//!
//! All entries lie in one block of bytes, ordered by the hashes of their keys, and those of a bucket are neighbours:
//!
//! | bytes | |
//! |---|---|
//! | 4 | the group of the key |
//! | 4 | the number that is found |
//! | 4 | the length of the key |
//! | | the key |
//!
//! A second block has the position at which each bucket begins. A look-up reads one position, which is often cached, and
//! then one or two lines of entries: a hash map of boxed keys waits for its control bytes, its row and the key in turn. An
//! entry takes 14 bytes more than its key.

use core::fmt;
use core::hash::BuildHasher;

use foldhash::quality::RandomState;

/// The average number of entries in a bucket: they fill two cache lines.
const BUCKET: usize = 4;

/// The bytes of an entry before its key.
const HEADER: usize = 12;

/// Finds numbers by a group and a byte string.
#[derive(Default)]
pub(crate) struct PackedMap {
    hasher: RandomState,
    /// The position of the first entry of each bucket, and the end of the last bucket.
    starts: Box<[usize]>,
    entries: Box<[u8]>,
    length: usize,
}

/// The entries of a map, while they are collected.
#[derive(Default)]
pub(crate) struct PackedMapBuilder {
    hasher: RandomState,
    /// The hash of each key, and the position of its entry.
    keys: Vec<(u64, usize)>,
    entries: Vec<u8>,
}

impl PackedMapBuilder {
    pub(crate) fn reserve(&mut self, keys: usize) {
        self.keys.reserve(keys);
    }

    /// Adds a key. Of two equal ones, the later is found.
    pub(crate) fn insert(&mut self, group: u32, key: &[u8], number: u32) {
        let Ok(length) = u32::try_from(key.len()) else { return };
        self.keys.push((hash(&self.hasher, group, key), self.entries.len()));
        for field in [group, number, length] {
            self.entries.extend_from_slice(&field.to_le_bytes());
        }
        self.entries.extend_from_slice(key);
    }

    pub(crate) fn build(mut self) -> PackedMap {
        let buckets = self.keys.len() / BUCKET + 1;
        // Later entries come first in their bucket.
        self.keys.sort_unstable_by_key(|(hash, at)| (*hash, core::cmp::Reverse(*at)));
        let mut starts = Vec::with_capacity(buckets + 1);
        let mut entries = Vec::with_capacity(self.entries.len());
        for (hash, at) in &self.keys {
            starts.resize(starts.len().max(bucket(*hash, buckets) + 1), entries.len());
            let entry = self.entries.get(*at..).and_then(PackedEntry::first);
            entries.extend_from_slice(
                entry.and_then(|entry| self.entries.get(*at..*at + entry.length())).unwrap_or_default(),
            );
        }
        starts.resize(buckets + 1, entries.len());
        PackedMap { hasher: self.hasher, starts: starts.into(), entries: entries.into(), length: self.keys.len() }
    }
}

impl PackedMap {
    /// Returns the number of a key.
    pub(crate) fn find(&self, group: u32, key: &[u8]) -> Option<u32> {
        let buckets = self.starts.len().checked_sub(1)?;
        let at = bucket(hash(&self.hasher, group, key), buckets);
        let mut rest = self.entries.get(*self.starts.get(at)?..*self.starts.get(at + 1)?)?;
        while let Some(entry) = PackedEntry::first(rest) {
            if entry.key == key && entry.group == group {
                return Some(entry.number);
            }
            rest = rest.get(entry.length()..)?;
        }
        None
    }

    /// Returns the number of entries.
    pub(crate) const fn len(&self) -> usize {
        self.length
    }
}

/// Returns the hash of a key. An odd factor spreads neighbouring groups over all buckets.
fn hash(hasher: &RandomState, group: u32, key: &[u8]) -> u64 {
    hasher.hash_one(key).wrapping_add(u64::from(group).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Returns the bucket of a hash. Hashes in order are in buckets in order.
fn bucket(hash: u64, buckets: usize) -> usize {
    let product = u128::from(hash) * buckets as u128;
    usize::try_from(product >> 64).unwrap_or_default()
}

/// An entry as it lies in the block.
struct PackedEntry<'m> {
    group: u32,
    number: u32,
    key: &'m [u8],
}

impl<'m> PackedEntry<'m> {
    /// Reads the entry at the beginning of some bytes.
    #[inline]
    fn first(bytes: &'m [u8]) -> Option<Self> {
        let (group, rest) = bytes.split_first_chunk()?;
        let (number, rest) = rest.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let key = rest.get(..u32::from_le_bytes(*length) as usize)?;
        Some(Self { group: u32::from_le_bytes(*group), number: u32::from_le_bytes(*number), key })
    }

    const fn length(&self) -> usize {
        HEADER + self.key.len()
    }
}

impl fmt::Debug for PackedMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PackedMap({})", self.length)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::collection::vec;
    use proptest::prelude::{prop_assert_eq, proptest};

    use super::PackedMapBuilder;

    proptest! {
        #[test]
        fn packed_map_finds_what_hash_map_finds(
            entries in vec((0..3_u32, "[ab]{0,6}", 0..9_u32), 0..200),
            asked in vec((0..4_u32, "[abc]{0,6}"), 1..50),
        ) {
            let mut builder = PackedMapBuilder::default();
            let mut expected = HashMap::new();
            for (group, key, number) in &entries {
                builder.insert(*group, key.as_bytes(), *number);
                expected.insert((*group, key.clone()), *number);
            }
            let packed = builder.build();
            for (group, key) in entries.into_iter().map(|(group, key, _)| (group, key)).chain(asked) {
                prop_assert_eq!(packed.find(group, key.as_bytes()), expected.get(&(group, key)).copied());
            }
        }
    }
}
