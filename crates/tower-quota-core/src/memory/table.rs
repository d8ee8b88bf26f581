//! A share of the store's subjects: rows in buckets of five.
//!
//! A subject may be in two buckets, both told by its hash (cuckoo hashing with buckets: Dietzfelbinger and Weidling,
//! 2007). It is in the first of them unless that was full, so looking it up is mostly one look at one bucket: at the tags
//! of its rows, which are compared all at once, and at the row whose tag it is. When both are full, somebody in them moves
//! to his other bucket, or somebody there does. The table begins with one bucket and grows by being written anew, a
//! thousand subjects or so in a store of the usual kind.

use std::collections::BTreeMap;

use super::bucket::{Bucket, NOBODY, ROWS};
use super::ghosts::Ghosts;
use super::room::Room;
use super::row::{Count, NARROW, Row, RowMut, WIDE};
use crate::entry::Entry;

/// The buckets of a table. Memory for all that a full store needs is reserved at once and touched as buckets come into
/// use: so growing leaves nothing behind.
pub(super) enum Buckets {
    /// Of rows for one limit.
    Narrow(Vec<Bucket<NARROW>>),
    /// Of rows for up to four limits.
    Wide(Vec<Bucket<WIDE>>),
}

pub(super) struct Table {
    pub(super) buckets: Buckets,
    taken: u32,
    /// The row before the one at which the next look for somebody who can go begins.
    pub(super) hand: u32,
    /// What most tables never have.
    rare: Option<Box<Rare>>,
}

#[derive(Default)]
pub(super) struct Rare {
    /// Limited subjects that had to go.
    pub(super) ghosts: Ghosts,
    /// Subjects that do not fit into a row, by what stands for their keys.
    pub(super) elsewhere: BTreeMap<u64, Entry>,
}

impl Table {
    /// The position of a subject's row.
    pub(super) fn find(&self, hash: u64) -> Option<usize> {
        match &self.buckets {
            Buckets::Narrow(buckets) => find(buckets, hash),
            Buckets::Wide(buckets) => find(buckets, hash),
        }
        .map(|(bucket, row)| bucket * ROWS + row)
    }

    /// The two buckets that a subject may be in. They may be the same.
    pub(super) fn homes(&self, hash: u64) -> [usize; 2] {
        [first_home(hash, self.len()), second_home(hash, self.len())]
    }

    pub(super) fn row(&self, position: usize) -> Row<'_> {
        let (bucket, row) = (position / ROWS, position % ROWS);
        match &self.buckets {
            Buckets::Narrow(buckets) => Row(&buckets[bucket].rows()[row]),
            Buckets::Wide(buckets) => Row(&buckets[bucket].rows()[row]),
        }
    }

    /// A row, to be changed in all but whose it is.
    pub(super) fn row_mut(&mut self, position: usize) -> RowMut<'_> {
        let (bucket, row) = (position / ROWS, position % ROWS);
        match &mut self.buckets {
            Buckets::Narrow(buckets) => RowMut(buckets[bucket].row_mut(row)),
            Buckets::Wide(buckets) => RowMut(buckets[bucket].row_mut(row)),
        }
    }

    /// Makes a row that of a key, or of nobody.
    fn give(&mut self, position: usize, hash: u64) {
        let (bucket, row) = (position / ROWS, position % ROWS);
        match &mut self.buckets {
            Buckets::Narrow(buckets) => buckets[bucket].give(row, hash),
            Buckets::Wide(buckets) => buckets[bucket].give(row, hash),
        }
    }

    /// Copies a row, which may be narrower, into one that is free.
    pub(super) fn copy_row(&mut self, position: usize, row: Row<'_>) {
        self.give(position, row.hash());
        self.row_mut(position).copy(row);
    }

    /// How many buckets there are.
    pub(super) const fn len(&self) -> usize {
        match &self.buckets {
            Buckets::Narrow(buckets) => buckets.len(),
            Buckets::Wide(buckets) => buckets.len(),
        }
    }

    pub(super) const fn is_wide(&self) -> bool {
        matches!(self.buckets, Buckets::Wide(_))
    }

    /// How many rows there are.
    pub(super) const fn rows(&self) -> usize {
        self.len() * ROWS
    }

    /// How many of them are in use.
    pub(super) const fn taken(&self) -> usize {
        self.taken as usize
    }

    /// Whether a row has room for these counts.
    pub(super) fn is_wide_enough(&self, counts: &[Count]) -> bool {
        self.is_wide() || counts.is_empty() || matches!(counts, [one] if one.is_small())
    }

    /// Begins a subject's row at a position that is free.
    pub(super) fn begin(&mut self, position: usize, hash: u64) {
        self.give(position, hash);
        self.taken += 1;
    }

    /// Frees a row, and gives its place back.
    pub(super) fn forget(&mut self, position: usize, room: &Room) {
        self.vacate(position);
        room.release();
    }

    /// Frees a row whose place somebody else takes.
    pub(super) fn vacate(&mut self, position: usize) {
        let hash = self.row(position).hash();
        if self.row(position).is_elsewhere()
            && let Some(rare) = &mut self.rare
        {
            rare.elsewhere.remove(&hash);
        }
        self.give(position, NOBODY);
        self.taken -= 1;
    }

    /// Gives back the places of subjects that have no row any more.
    pub(super) fn lose(&mut self, subjects: usize, room: &Room) {
        self.taken = self.taken.saturating_sub(u32::try_from(subjects).unwrap_or(u32::MAX));
        room.release_all(subjects);
        if let Some(mut rare) = self.rare.take() {
            rare.elsewhere.retain(|&hash, _| self.find(hash).is_some());
            self.rare = Some(rare);
        }
    }

    /// Moves a subject to a row that is free.
    pub(super) fn move_row(&mut self, from: usize, to: usize) {
        let mut words = [0; WIDE];
        let row = self.row(from).0;
        let words = &mut words[..row.len()];
        words.copy_from_slice(row);
        self.copy_row(to, Row(words));
        self.give(from, NOBODY);
    }

    /// Frees all rows, and goes on with so many buckets of such rows. What the rows held.
    pub(super) fn renew(&mut self, buckets: usize, is_wide: bool, reserved: usize) -> Vec<u64> {
        let held = match &mut self.buckets {
            Buckets::Narrow(buckets) => drained(buckets),
            Buckets::Wide(buckets) => drained(buckets),
        };
        if is_wide != self.is_wide() {
            self.buckets = if is_wide { Buckets::Wide(Vec::new()) } else { Buckets::Narrow(Vec::new()) };
        }
        match &mut self.buckets {
            Buckets::Narrow(rows) => fill(rows, buckets, reserved),
            Buckets::Wide(rows) => fill(rows, buckets, reserved),
        }
        self.hand = 0;
        held
    }

    /// Forgets everybody.
    pub(super) fn clear(&mut self, room: &Room) {
        let forgotten = core::mem::take(self);
        room.release_all(forgotten.taken());
    }

    /// Limited subjects that had to go, if there are any.
    pub(super) fn ghosts(&mut self) -> Option<&mut Ghosts> {
        self.rare.as_mut().map(|rare| &mut rare.ghosts)
    }

    /// What most tables never have, made where it is missing.
    pub(super) fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// The subject of a row, if it does not fit into it.
    pub(super) fn elsewhere(&self, row: Row<'_>) -> Option<&Entry> {
        if !row.is_elsewhere() {
            return None;
        }
        self.rare.as_ref()?.elsewhere.get(&row.hash())
    }
}

impl Default for Table {
    fn default() -> Self {
        Self { buckets: Buckets::Narrow(Vec::new()), taken: 0, hand: 0, rare: None }
    }
}

/// Empties buckets. The words of the rows that were in use.
fn drained<const W: usize>(buckets: &mut Vec<Bucket<W>>) -> Vec<u64> {
    let rows = buckets.iter().flat_map(Bucket::rows).filter(|row| !Row(&row[..]).is_free());
    let held = rows.flatten().copied().collect();
    buckets.clear();
    held
}

/// Makes so many free buckets.
fn fill<const W: usize>(buckets: &mut Vec<Bucket<W>>, wanted: usize, reserved: usize) {
    buckets.reserve_exact(wanted.max(reserved));
    buckets.resize(wanted, Bucket::EMPTY);
}

/// The words of a subject's row.
#[inline]
pub(super) fn row_of<const W: usize>(buckets: &mut [Bucket<W>], hash: u64) -> Option<&mut [u64; W]> {
    let first = first_home(hash, buckets.len());
    // On a path of its own, so that no index is looked at twice.
    if let Some(row) = buckets.get(first)?.find(hash) {
        return Some(buckets[first].row_mut(row));
    }
    let (second, row) = find_in_second(buckets, hash)?;
    Some(buckets[second].row_mut(row))
}

/// The bucket that a subject is in unless that was full. The high bits of the hash have chosen the table.
#[inline]
pub(super) const fn first_home(hash: u64, buckets: usize) -> usize {
    (((hash & 0xffff_ffff) * buckets as u64) >> 32) as usize
}

/// The other one, which may be the same.
#[inline]
const fn second_home(hash: u64, buckets: usize) -> usize {
    first_home(hash >> 16, buckets)
}

/// The bucket and the row of a subject.
#[inline]
fn find<const W: usize>(buckets: &[Bucket<W>], hash: u64) -> Option<(usize, usize)> {
    let first = first_home(hash, buckets.len());
    match buckets.get(first)?.find(hash) {
        Some(row) => Some((first, row)),
        None => find_in_second(buckets, hash),
    }
}

#[inline(never)]
fn find_in_second<const W: usize>(buckets: &[Bucket<W>], hash: u64) -> Option<(usize, usize)> {
    let second = second_home(hash, buckets.len());
    buckets.get(second)?.find(hash).map(|row| (second, row))
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
