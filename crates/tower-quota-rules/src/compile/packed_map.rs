//! A map of many byte strings, which is built once and found with few cache misses.
//!
//! Entries lie in lines of the processor's cache. The hash of a key says in which line its entry is; where a line is full,
//! its entries go on in the next one. A line begins with a byte: the number of bytes that its entries take, and in the top
//! bit whether they go on. An entry is:
//!
//! | bytes | |
//! |---|---|
//! | 1 to 5 | the group of the key |
//! | 1 to 5 | the number that is found |
//! | 1 to 5 | the length of the key |
//! | | the key; of a long key, 4 bytes that say where it begins in a list of all long keys |
//!
//! The numbers are of variable length: each byte has seven bits, the lowest ones first, and its top bit says that another
//! byte follows.
//!
//! A look-up mostly reads one line, where a hash map of boxed keys waits for its control bytes, its row and the key in turn.

use core::fmt;
use core::hash::BuildHasher;

use foldhash::quality::RandomState;

/// Bytes of a line.
const LINE: usize = 64;
/// Bytes of a line that entries take.
const ROOM: usize = LINE - 1;
/// Says that the entries of a line go on in the next one.
const GOES_ON: u8 = 0x80;
/// The longest key that lies in a line.
const LONGEST: usize = 40;
/// Entries take this part of all lines, in percent: of fuller ones, many go on.
const FILLED: usize = 70;

/// A line of the cache: a byte, and entries.
#[derive(Clone)]
#[repr(align(64))]
struct CacheLine([u8; LINE]);

/// Finds numbers by a group and a byte string.
#[derive(Default)]
pub(crate) struct PackedMap {
    hasher: RandomState,
    lines: Box<[CacheLine]>,
    /// The lines that hashes lead to. Further ones are behind the last of these.
    homes: usize,
    long_keys: Box<[u8]>,
    length: usize,
}

/// The entries of a map, while they are collected.
#[derive(Default)]
pub(crate) struct PackedMapBuilder {
    hasher: RandomState,
    /// The hash of each key, and where its entry begins and ends.
    keys: Vec<(u64, usize, u8)>,
    entries: Vec<u8>,
    long_keys: Vec<u8>,
}

impl PackedMapBuilder {
    pub(crate) fn reserve(&mut self, keys: usize) {
        self.keys.reserve(keys);
    }

    /// Adds a key. Of two equal ones, the later is found.
    pub(crate) fn insert(&mut self, group: u32, key: &[u8], number: u32) {
        let (Ok(length), Ok(long)) = (
            u32::try_from(key.len()),
            u32::try_from(self.long_keys.len()),
        ) else {
            return;
        };
        let start = self.entries.len();
        [group, number, length]
            .into_iter()
            .for_each(|number| push(&mut self.entries, number));
        if key.len() <= LONGEST {
            self.entries.extend_from_slice(key);
        } else {
            self.entries.extend_from_slice(&long.to_le_bytes());
            self.long_keys.extend_from_slice(key);
        }
        // At most three numbers and the longest key: less than a line.
        let bytes = u8::try_from(self.entries.len() - start).unwrap_or(u8::MAX);
        self.keys
            .push((hash(&self.hasher, group, key), start, bytes));
    }

    pub(crate) fn build(mut self) -> PackedMap {
        let homes = self.entries.len() * 100 / (FILLED * ROOM) + 1;
        // Later entries come first in their line.
        self.keys
            .sort_unstable_by_key(|(hash, start, _)| (*hash, core::cmp::Reverse(*start)));
        let mut lines = vec![CacheLine([0; LINE]); homes];
        let mut at = 0;
        for (hash, start, bytes) in &self.keys {
            let entry = self
                .entries
                .get(*start..*start + usize::from(*bytes))
                .unwrap_or_default();
            let home = home(*hash, homes);
            at = at.max(home);
            while lines.get_mut(at).is_some_and(|line| !add(line, entry)) {
                at += 1;
                if at == lines.len() {
                    lines.push(CacheLine([0; LINE]));
                }
            }
            lines
                .get_mut(home..at)
                .unwrap_or_default()
                .iter_mut()
                .for_each(|line| line.0[0] |= GOES_ON);
        }
        let (lines, long_keys) = (lines.into(), self.long_keys.into());
        PackedMap {
            hasher: self.hasher,
            lines,
            homes,
            long_keys,
            length: self.keys.len(),
        }
    }
}

impl PackedMap {
    /// Returns the number of a key.
    pub(crate) fn find(&self, group: u32, key: &[u8]) -> Option<u32> {
        if self.length == 0 {
            return None;
        }
        let home = home(hash(&self.hasher, group, key), self.homes);
        for CacheLine([used, entries @ ..]) in self.lines.get(home..)? {
            let mut rest = entries.get(..usize::from(used & !GOES_ON))?;
            while let Some((entry, after)) = PackedEntry::first(rest) {
                if entry.length == key.len() && entry.group == group && self.is_key(&entry, key) {
                    return Some(entry.number);
                }
                rest = after;
            }
            if used & GOES_ON == 0 {
                return None;
            }
        }
        None
    }

    /// Returns whether an entry has this key, which is as long as its own.
    #[inline]
    fn is_key(&self, entry: &PackedEntry<'_>, key: &[u8]) -> bool {
        let Some(start) = entry.long_at() else {
            return entry.kept == key;
        };
        self.long_keys
            .get(start..)
            .is_some_and(|keys| keys.starts_with(key))
    }

    /// Returns the number of entries.
    pub(crate) const fn len(&self) -> usize {
        self.length
    }
}

/// Adds an entry to a line. Returns `false` if it has no room.
fn add(CacheLine([used, room @ ..]): &mut CacheLine, entry: &[u8]) -> bool {
    let start = usize::from(*used & !GOES_ON);
    let Some(place) = room.get_mut(start..start + entry.len()) else {
        return false;
    };
    place.copy_from_slice(entry);
    *used += u8::try_from(entry.len()).unwrap_or_default();
    true
}

/// Returns the hash of a key. An odd factor spreads neighbouring groups over all lines.
fn hash(hasher: &RandomState, group: u32, key: &[u8]) -> u64 {
    hasher
        .hash_one(key)
        .wrapping_add(u64::from(group).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Returns the line of a hash. Hashes in order are in lines in order.
fn home(hash: u64, homes: usize) -> usize {
    let product = u128::from(hash) * homes as u128;
    usize::try_from(product >> 64).unwrap_or_default()
}

/// An entry as it lies in a line.
struct PackedEntry<'m> {
    group: u32,
    number: u32,
    /// The length of the key.
    length: usize,
    /// The key, or the place of a long one.
    kept: &'m [u8],
}

impl<'m> PackedEntry<'m> {
    /// Reads the entry at the beginning of some bytes. Returns it, and the bytes behind it.
    #[inline]
    fn first(bytes: &'m [u8]) -> Option<(Self, &'m [u8])> {
        let (group, rest) = pop(bytes)?;
        let (number, rest) = pop(rest)?;
        let (length, rest) = pop(rest)?;
        let length = length as usize;
        let (kept, rest) = rest.split_at_checked(if length <= LONGEST {
            length
        } else {
            size_of::<u32>()
        })?;
        Some((
            Self {
                group,
                number,
                length,
                kept,
            },
            rest,
        ))
    }

    /// Returns where the key begins among the long ones, if it is one of them.
    #[inline]
    fn long_at(&self) -> Option<usize> {
        let place = self.kept.first_chunk().filter(|_| self.length > LONGEST)?;
        Some(u32::from_le_bytes(*place) as usize)
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
            entries in vec((0..3_u32, "[ab]{0,6}|b{39,42}|b{200}", prop_oneof![0..200_u32, any::<u32>()]), 0..200),
            asked in vec((0..4_u32, "[abc]{0,6}|b{39,42}|b{200}"), 1..50),
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
