//! A share of the store's subjects: rows in buckets of four.
//!
//! A subject may be in two buckets, both told by its hash (cuckoo hashing with buckets: Dietzfelbinger and Weidling,
//! 2007). When both are full, somebody in them moves to his other bucket, or somebody there does. So 19 of 20 rows can be
//! in use, and looking a subject up is one look at both buckets, each of neighbouring cache lines. The table begins with
//! one bucket and grows by being written anew, two thousand subjects at most in a store of the usual kind.

use std::collections::BTreeMap;

use super::ghosts::Ghosts;
use super::room::Room;
use super::row::{HASH, NARROW, Row, RowMut, WIDE};
use crate::subject::Subject;

/// Rows of a bucket.
pub(super) const ROWS: usize = 4;

/// Rows that are looked at together: two neighbouring cache lines of narrow rows, four of wide ones.
#[derive(Clone, Copy)]
#[repr(align(128))]
pub(super) struct Bucket<const W: usize>([[u64; W]; ROWS]);

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
    pub(super) elsewhere: BTreeMap<u64, Subject>,
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
        homes(hash, self.len())
    }

    pub(super) fn row(&self, position: usize) -> Row<'_> {
        let (bucket, row) = (position / ROWS, position % ROWS);
        match &self.buckets {
            Buckets::Narrow(buckets) => Row(&buckets[bucket].0[row]),
            Buckets::Wide(buckets) => Row(&buckets[bucket].0[row]),
        }
    }

    pub(super) fn row_mut(&mut self, position: usize) -> RowMut<'_> {
        let (bucket, row) = (position / ROWS, position % ROWS);
        match &mut self.buckets {
            Buckets::Narrow(buckets) => RowMut(&mut buckets[bucket].0[row]),
            Buckets::Wide(buckets) => RowMut(&mut buckets[bucket].0[row]),
        }
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

    /// Whether a row has room for so many limits.
    pub(super) const fn is_wide_enough(&self, limits: usize) -> bool {
        self.is_wide() || limits <= 1
    }

    /// Begins a subject's row at a position that is free.
    pub(super) fn begin(&mut self, position: usize, hash: u64) {
        self.row_mut(position).begin(hash);
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
        if self.row(position).summary().is_elsewhere()
            && let Some(rare) = &mut self.rare
        {
            rare.elsewhere.remove(&hash);
        }
        self.row_mut(position).free();
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
        self.row_mut(to).0.copy_from_slice(words);
        self.row_mut(from).free();
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

    /// A subject that does not fit into its row.
    pub(super) fn elsewhere(&self, hash: u64) -> Option<&Subject> {
        self.rare.as_ref()?.elsewhere.get(&hash)
    }
}

impl Default for Table {
    fn default() -> Self {
        Self { buckets: Buckets::Narrow(Vec::new()), taken: 0, hand: 0, rare: None }
    }
}

/// Empties buckets. The words of the rows that were in use.
fn drained<const W: usize>(buckets: &mut Vec<Bucket<W>>) -> Vec<u64> {
    let rows = buckets.iter().flat_map(|bucket| &bucket.0).filter(|row| !Row(&row[..]).is_free());
    let held = rows.flatten().copied().collect();
    buckets.clear();
    held
}

/// Makes so many free buckets.
fn fill<const W: usize>(buckets: &mut Vec<Bucket<W>>, wanted: usize, reserved: usize) {
    buckets.reserve_exact(wanted.max(reserved));
    buckets.resize(wanted, Bucket([[0; W]; ROWS]));
}

/// The words of a subject's row.
#[inline]
pub(super) fn row_of<const W: usize>(buckets: &mut [Bucket<W>], hash: u64) -> Option<&mut [u64; W]> {
    let (bucket, row) = find(buckets, hash)?;
    Some(&mut buckets[bucket].0[row])
}

#[inline]
fn homes(hash: u64, buckets: usize) -> [usize; 2] {
    // The high bits have chosen the table.
    [hash & 0xffff_ffff, hash >> 16 & 0xffff_ffff].map(|part| ((part * buckets as u64) >> 32) as usize)
}

/// The bucket and the row of a subject.
#[inline]
fn find<const W: usize>(buckets: &[Bucket<W>], hash: u64) -> Option<(usize, usize)> {
    let [first, second] = homes(hash, buckets.len());
    // Both at once: which of the two it is can not be foreseen either, and the second need not wait for the first.
    let found = matching(buckets.get(first)?, hash) | matching(buckets.get(second)?, hash) << ROWS;
    let row = found.trailing_zeros() as usize;
    let bucket = if row < ROWS { first } else { second };
    (found != 0).then_some((bucket, row % ROWS))
}

/// A bit for each row of this hash: without a branch, since which of them it is can not be foreseen.
#[inline]
fn matching<const W: usize>(bucket: &Bucket<W>, hash: u64) -> u32 {
    let [a, b, c, d] = bucket.0.each_ref().map(|row| u32::from(row[HASH] == hash));
    a | b << 1 | c << 2 | d << 3
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
