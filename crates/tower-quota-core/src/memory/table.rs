//! Tables: each holds a share of the store's entries, as rows in buckets of five.
//!
//! An entry may be in two buckets, both chosen by its key's hash (cuckoo hashing with buckets: Dietzfelbinger and
//! Weidling, 2007). A look-up takes these steps:
//!
//! 1. The tags of all rows of the first bucket are compared at once, and the row with the tag is read.
//! 2. Only if the first bucket was full at some time, which it notes, the second bucket is searched.
//!
//! When both buckets are full, some entry moves to its other bucket (see `cuckoo`). The table starts with one bucket and
//! is rewritten when it grows: up to some four thousand entries in a store of the usual size.

use std::collections::BTreeMap;

use super::bucket::{FREE, ROWS, TableBucket};
use super::capacity::Capacity;
use super::filter::EvictedFilter;
use super::interned::Interned;
use super::row::{Count, NARROW, Row, RowMut, WIDE};
use crate::entry::Entry;

/// The buckets of a table.
///
/// Memory for the buckets of a full store is reserved at once, and touched only when a bucket is used. Growing
/// therefore leaves no unused memory behind.
pub(super) enum Buckets {
    /// Buckets of rows for one limit.
    Narrow(Vec<TableBucket<NARROW>>),
    /// Buckets of rows for up to four limits.
    Wide(Vec<TableBucket<WIDE>>),
}

/// Does the same with buckets of either width.
macro_rules! either {
    ($either:expr, $buckets:ident => $action:expr) => {
        match $either {
            Buckets::Narrow($buckets) => $action,
            Buckets::Wide($buckets) => $action,
        }
    };
}
pub(super) use either;

pub(super) struct Table {
    pub(super) buckets: Buckets,
    /// The limits of its rows.
    pub(super) interned: Interned,
    taken: u32,
    /// The bucket at which the next search for an entry to evict begins.
    pub(super) hand: u32,
    pub(super) rare: Option<Box<Rare>>,
}

/// Parts that most tables never need.
#[derive(Default)]
pub(super) struct Rare {
    pub(super) filter: EvictedFilter,
    /// Entries that do not fit into a row, by their keys' hashes.
    pub(super) elsewhere: BTreeMap<u64, Entry>,
    /// Limits of returning keys that were found in the filter.
    pub(super) filter_hits: u64,
}

impl Table {
    /// Returns the position of an entry's row.
    pub(super) fn find(&self, hash: u64) -> Option<usize> {
        either!(&self.buckets, buckets => find(buckets, hash))
    }

    /// Returns the position of an entry's row, unless it is too far ahead of the clock to be true. Such a row is dropped.
    pub(super) fn find_trusted(
        &mut self,
        hash: u64,
        clock: u64,
        capacity: &Capacity,
    ) -> Option<usize> {
        let position = self.find(hash)?;
        if self.is_trusted(position, clock) {
            return Some(position);
        }
        self.forget(hash, capacity);
        None
    }

    /// Returns the two buckets that an entry may be in. They may be the same.
    pub(super) fn homes(&self, hash: u64) -> [usize; 2] {
        [first_home(hash, self.len()), second_home(hash, self.len())]
    }

    pub(super) fn row(&self, position: usize) -> Row<'_> {
        let (bucket, row) = (position / ROWS, position % ROWS);
        either!(&self.buckets, buckets => Row(&buckets[bucket].rows()[row]))
    }

    /// Returns the rows of a bucket, free ones too.
    pub(super) fn rows_in(&self, bucket: usize) -> impl Iterator<Item = Row<'_>> {
        let (words, width) = match &self.buckets {
            Buckets::Narrow(buckets) => (buckets[bucket].rows().as_flattened(), NARROW),
            Buckets::Wide(buckets) => (buckets[bucket].rows().as_flattened(), WIDE),
        };
        words.chunks_exact(width).map(Row)
    }

    /// Returns a row, to be changed in all but its hash.
    pub(super) fn row_mut(&mut self, position: usize) -> RowMut<'_> {
        let (bucket, row) = (position / ROWS, position % ROWS);
        either!(&mut self.buckets, buckets => RowMut(buckets[bucket].row_mut(row)))
    }

    /// Gives a row to a key, or makes it free.
    fn assign(&mut self, position: usize, hash: u64) {
        either!(&mut self.buckets, buckets => assign(buckets, position, hash))
    }

    /// Copies a row, which may be narrower, into one that is free.
    pub(super) fn copy_row(&mut self, position: usize, row: Row<'_>) {
        self.assign(position, row.hash());
        self.row_mut(position).copy(row);
    }

    /// Returns how many buckets there are.
    pub(super) const fn len(&self) -> usize {
        either!(&self.buckets, buckets => buckets.len())
    }

    pub(super) const fn is_wide(&self) -> bool {
        matches!(self.buckets, Buckets::Wide(_))
    }

    /// Returns how many rows there are.
    pub(super) const fn rows(&self) -> usize {
        self.len() * ROWS
    }

    /// Returns how many rows are in use.
    pub(super) const fn taken(&self) -> usize {
        self.taken as usize
    }

    /// Returns whether a row has room for these counts.
    pub(super) fn is_wide_enough(&self, counts: &[Count]) -> bool {
        self.is_wide() || counts.is_empty() || matches!(counts, [one] if one.is_small())
    }

    /// Begins an entry's row at a position that is free.
    pub(super) fn begin(&mut self, position: usize, hash: u64) {
        self.assign(position, hash);
        self.taken += 1;
    }

    /// Frees a row.
    pub(super) fn vacate(&mut self, position: usize) {
        let hash = self.row(position).hash();
        if self.row(position).is_elsewhere()
            && let Some(rare) = &mut self.rare
        {
            rare.elsewhere.remove(&hash);
        }
        self.assign(position, FREE);
        self.taken -= 1;
    }

    /// Gives back the places of entries that have no row any more.
    pub(super) fn lose(&mut self, entries: usize, capacity: &Capacity) {
        self.taken = self
            .taken
            .saturating_sub(u32::try_from(entries).unwrap_or(u32::MAX));
        capacity.release(entries);
        if let Some(mut rare) = self.rare.take() {
            rare.elsewhere.retain(|&hash, _| self.find(hash).is_some());
            self.rare = Some(rare);
        }
    }

    /// Moves an entry to a row that is free.
    pub(super) fn move_row(&mut self, from: usize, to: usize) {
        let mut words = [0; WIDE];
        let row = self.row(from).0;
        let words = &mut words[..row.len()];
        words.copy_from_slice(row);
        self.copy_row(to, Row(words));
        self.assign(from, FREE);
    }

    /// Replaces the buckets by this many free ones. Returns the words of the rows that were in use.
    pub(super) fn renew(&mut self, buckets: usize, is_wide: bool, reserved: usize) -> Vec<u64> {
        let held = either!(&mut self.buckets, buckets => drained(buckets));
        if is_wide != self.is_wide() {
            self.buckets = if is_wide {
                Buckets::Wide(Vec::new())
            } else {
                Buckets::Narrow(Vec::new())
            };
        }
        either!(&mut self.buckets, rows => fill(rows, buckets, reserved));
        self.hand = 0;
        held
    }

    /// Forgets every entry.
    pub(super) fn clear(&mut self, capacity: &Capacity) {
        let forgotten = core::mem::take(self);
        capacity.release(forgotten.taken());
        if forgotten.filter_hits() > 0 {
            self.rare().filter_hits = forgotten.filter_hits();
        }
    }

    /// Returns the instant until which the filter says that a limit of a key is spent, and counts the hit.
    #[inline]
    pub(super) fn evicted_until(&mut self, limit: (u64, u32), now: u64) -> Option<u64> {
        let rare = self.rare.as_mut()?;
        let until = rare.filter.until(limit, now);
        rare.filter_hits += u64::from(until.is_some());
        until
    }

    /// Returns how often a limit of a returning key was found in the filter.
    pub(super) fn filter_hits(&self) -> u64 {
        self.rare.as_ref().map_or(0, |rare| rare.filter_hits)
    }

    /// Returns the filter of evicted limits, if there are any.
    pub(super) fn filter(&mut self) -> Option<&mut EvictedFilter> {
        self.rare.as_mut().map(|rare| &mut rare.filter)
    }

    /// Returns the parts that most tables never need, and makes them if they are missing.
    pub(super) fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// Returns the entry of a row, if it does not fit into it.
    pub(super) fn elsewhere(&self, row: Row<'_>) -> Option<&Entry> {
        if !row.is_elsewhere() {
            return None;
        }
        self.rare.as_ref()?.elsewhere.get(&row.hash())
    }

    /// Returns the bytes of its buckets and of its filter.
    pub(super) fn bytes(&self) -> usize {
        let buckets = either!(&self.buckets, buckets => size_of_val(&**buckets));
        buckets + self.rare.as_ref().map_or(0, |rare| rare.filter.bytes())
    }
}

impl Default for Table {
    fn default() -> Self {
        Self {
            buckets: Buckets::Narrow(Vec::new()),
            interned: Interned::default(),
            taken: 0,
            hand: 0,
            rare: None,
        }
    }
}

/// Gives a row to a key, or makes it free.
fn assign<const W: usize>(buckets: &mut [TableBucket<W>], position: usize, hash: u64) {
    let (bucket, row) = (position / ROWS, position % ROWS);
    let home = first_home(hash, buckets.len());
    if hash != FREE && home != bucket {
        buckets[home].spill();
    }
    buckets[bucket].assign(row, hash);
}

/// Empties buckets. Returns the words of the rows that were in use.
fn drained<const W: usize>(buckets: &mut Vec<TableBucket<W>>) -> Vec<u64> {
    let mut held = Vec::with_capacity(buckets.len() * ROWS * W);
    for row in buckets
        .iter()
        .flat_map(TableBucket::rows)
        .filter(|row| !Row(&row[..]).is_free())
    {
        held.extend_from_slice(row);
    }
    buckets.clear();
    held
}

/// Makes this many free buckets.
fn fill<const W: usize>(buckets: &mut Vec<TableBucket<W>>, wanted: usize, reserved: usize) {
    buckets.reserve_exact(wanted.max(reserved));
    buckets.resize(wanted, TableBucket::EMPTY);
}

/// Returns the words of an entry's row.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "a call would save and restore as many registers as the search uses"
)]
pub(super) fn row_of<const W: usize>(
    buckets: &mut [TableBucket<W>],
    hash: u64,
) -> Option<&mut [u64; W]> {
    let first = first_home(hash, buckets.len());
    // A separate path, so that no index is checked twice.
    if let Some(word) = buckets.get(first)?.find(hash) {
        return buckets[first].row_at(word);
    }
    let (second, word) = find_in_second(buckets, hash)?;
    buckets[second].row_at(word)
}

/// Returns the first bucket of an entry. The high bits of the hash have chosen the table.
#[inline]
pub(super) const fn first_home(hash: u64, buckets: usize) -> usize {
    (((hash & 0xffff_ffff) * buckets as u64) >> 32) as usize
}

/// Returns the other bucket of an entry, which may be the same.
#[inline]
const fn second_home(hash: u64, buckets: usize) -> usize {
    first_home(hash >> 16, buckets)
}

/// Returns the position of an entry's row.
#[inline]
fn find<const W: usize>(buckets: &[TableBucket<W>], hash: u64) -> Option<usize> {
    let first = first_home(hash, buckets.len());
    let (bucket, word) = match buckets.get(first)?.find(hash) {
        Some(word) => (first, word),
        None => find_in_second(buckets, hash)?,
    };
    Some(bucket * ROWS + word / W)
}

/// Returns the bucket, and the first word of its row, of an entry that is not in its first bucket.
#[inline(never)]
fn find_in_second<const W: usize>(buckets: &[TableBucket<W>], hash: u64) -> Option<(usize, usize)> {
    if !buckets.get(first_home(hash, buckets.len()))?.has_spilled() {
        return None;
    }
    let second = second_home(hash, buckets.len());
    buckets.get(second)?.find(hash).map(|word| (second, word))
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
