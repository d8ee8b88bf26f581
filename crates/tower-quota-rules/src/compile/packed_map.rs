//! A map of many byte strings, which is built once and found with few cache misses.
//!
//! All entries lie in one block of bytes, ordered by the hashes of their keys, and those of a bucket are neighbours:
//!
//! | bytes | |
//! |---|---|
//! | 1 to 5 | the group of the key |
//! | 1 to 5 | the number that is found |
//! | 1 to 5 | the length of the key |
//! | | the key |
//!
//! The numbers are of variable length: each byte has seven bits, the lowest ones first, and its top bit says that another
//! byte follows. A second block has the position at which each bucket begins. A look-up reads one position and one or two
//! lines of entries: a hash map of boxed keys waits for its control bytes, its row and the key in turn. An entry of small
//! numbers takes 5 bytes more than its key.

use core::fmt;
use core::hash::BuildHasher;

use foldhash::quality::RandomState;

/// The average number of entries in a bucket: they fill about one cache line.
const BUCKET: usize = 2;

/// Finds numbers by a group and a byte string.
#[derive(Default)]
pub(crate) struct PackedMap {
    hasher: RandomState,
    /// The position of the first entry of each bucket, and the end of the last bucket.
    starts: Box<[u32]>,
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
        [group, number, length].into_iter().for_each(|number| push(&mut self.entries, number));
        self.entries.extend_from_slice(key);
    }

    pub(crate) fn build(mut self) -> PackedMap {
        let buckets = self.keys.len() / BUCKET + 1;
        // Later entries come first in their bucket.
        self.keys.sort_unstable_by_key(|(hash, at)| (*hash, core::cmp::Reverse(*at)));
        let mut starts = Vec::with_capacity(buckets + 1);
        let mut entries = Vec::with_capacity(self.entries.len());
        for (hash, at) in &self.keys {
            starts.resize(starts.len().max(bucket(*hash, buckets) + 1), position(&entries));
            let behind = self.entries.get(*at..).unwrap_or_default();
            let length = PackedEntry::first(behind).map_or(0, |(_, rest)| behind.len() - rest.len());
            entries.extend_from_slice(behind.get(..length).unwrap_or_default());
        }
        starts.resize(buckets + 1, position(&entries));
        PackedMap { hasher: self.hasher, starts: starts.into(), entries: entries.into(), length: self.keys.len() }
    }
}

impl PackedMap {
    /// Returns the number of a key.
    pub(crate) fn find(&self, group: u32, key: &[u8]) -> Option<u32> {
        let buckets = self.starts.len().checked_sub(1)?;
        let at = bucket(hash(&self.hasher, group, key), buckets);
        let mut rest = self.entries.get(*self.starts.get(at)? as usize..*self.starts.get(at + 1)? as usize)?;
        while let Some((entry, after)) = PackedEntry::first(rest) {
            if entry.key == key && entry.group == group {
                return Some(entry.number);
            }
            rest = after;
        }
        None
    }

    /// Returns the number of entries.
    pub(crate) const fn len(&self) -> usize {
        self.length
    }
}

/// Returns the position of the next entry. Documents are shorter than 4 GB.
fn position(entries: &[u8]) -> u32 {
    u32::try_from(entries.len()).unwrap_or(u32::MAX)
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
    /// Reads the entry at the beginning of some bytes. Returns it, and the bytes behind it.
    #[inline]
    fn first(bytes: &'m [u8]) -> Option<(Self, &'m [u8])> {
        let (group, rest) = pop(bytes)?;
        let (number, rest) = pop(rest)?;
        let (length, rest) = pop(rest)?;
        let (key, rest) = rest.split_at_checked(length as usize)?;
        Some((Self { group, number, key }, rest))
    }
}

/// Writes a number of variable length.
fn push(bytes: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        let [low, ..] = number.to_le_bytes();
        bytes.push(low | 0x80);
        number >>= 7;
    }
    let [last, ..] = number.to_le_bytes();
    bytes.push(last);
}

/// Reads the number at the beginning of some bytes. Returns it, and the bytes behind it.
#[inline]
fn pop(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (mut number, mut shift, mut rest) = (0, 0, bytes);
    loop {
        let (byte, after) = rest.split_first()?;
        number |= u32::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            return Some((number, after));
        }
        (shift, rest) = (shift + 7, after);
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
    use proptest::prelude::{Just, any, prop_assert_eq, prop_oneof, proptest};

    use super::PackedMapBuilder;

    proptest! {
        #[test]
        fn packed_map_finds_what_hash_map_finds(
            // Numbers and lengths of one byte and of several.
            entries in vec((0..3_u32, "[ab]{0,6}|b{200}", prop_oneof![0..200_u32, any::<u32>()]), 0..200),
            asked in vec((0..4_u32, "[abc]{0,6}|b{200}"), 1..50),
            first in prop_oneof![Just(0), Just(100), Just(u32::MAX - 3)],
        ) {
            let mut builder = PackedMapBuilder::default();
            let mut expected = HashMap::new();
            for (group, key, number) in &entries {
                builder.insert(first + group, key.as_bytes(), *number);
                expected.insert((*group, key.clone()), *number);
            }
            let packed = builder.build();
            for (group, key) in entries.into_iter().map(|(group, key, _)| (group, key)).chain(asked) {
                prop_assert_eq!(packed.find(first + group, key.as_bytes()), expected.get(&(group, key)).copied());
            }
        }
    }
}
