//! A share of the store's subjects: rows in buckets of four.
//!
//! A subject may be in two buckets, both told by its hash (cuckoo hashing with buckets: Dietzfelbinger and Weidling,
//! 2007). When both are full, somebody in them moves to his other bucket, or somebody there does. So 19 of 20 rows can be
//! in use, and looking a subject up takes one or two looks, each at neighbouring cache lines. The table begins with one
//! bucket and grows by being written anew, a thousand subjects at most in a store of the usual kind.

use std::collections::BTreeMap;

use super::ghosts::Ghosts;
use super::room::Room;
use super::row::{HASH, NARROW, Row, RowMut, WIDE};
use crate::subject::Subject;

/// Rows of a bucket.
pub(super) const ROWS: usize = 4;

/// A cache line: two narrow rows or a wide one.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Line([[u64; NARROW]; 2]);

#[derive(Default)]
pub(super) struct Table {
    lines: Box<[Line]>,
    /// Whether rows have the width of a line, for up to four limits.
    is_wide: bool,
    buckets: u32,
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
    #[inline]
    pub(super) fn find(&self, hash: u64) -> Option<usize> {
        let [first, second] = self.homes(hash);
        self.find_in(first, hash).or_else(|| self.find_in(second, hash))
    }

    /// The two buckets that a subject may be in. They may be the same.
    #[inline]
    pub(super) fn homes(&self, hash: u64) -> [usize; 2] {
        // The high bits have chosen the table.
        [hash & 0xffff_ffff, hash >> 16 & 0xffff_ffff].map(|part| {
            #[expect(clippy::cast_possible_truncation, reason = "less than the number of buckets")]
            let bucket = (part * u64::from(self.buckets) >> 32) as usize;
            bucket
        })
    }

    /// Without a branch for each row: which of them it is can not be foreseen.
    #[inline]
    fn find_in(&self, bucket: usize, hash: u64) -> Option<usize> {
        let found = if self.is_wide {
            let [a, b, c, d] = self.lines.as_chunks::<4>().0.get(bucket)?;
            bits([a, b, c, d].map(|line| line.0[0][HASH]), hash)
        } else {
            let [a, b] = self.lines.as_chunks::<2>().0.get(bucket)?;
            bits([a.0[0][HASH], a.0[1][HASH], b.0[0][HASH], b.0[1][HASH]], hash)
        };
        (found != 0).then(|| bucket * ROWS + found.trailing_zeros() as usize)
    }

    #[inline]
    pub(super) fn row(&self, position: usize) -> Row<'_> {
        match self.is_wide {
            true => Row(self.lines[position].0.as_flattened()),
            false => Row(&self.lines[position / 2].0[position % 2]),
        }
    }

    #[inline]
    pub(super) fn row_mut(&mut self, position: usize) -> RowMut<'_> {
        match self.is_wide {
            true => RowMut(self.lines[position].0.as_flattened_mut()),
            false => RowMut(&mut self.lines[position / 2].0[position % 2]),
        }
    }

    /// How many rows there are.
    pub(super) const fn rows(&self) -> usize {
        self.buckets as usize * ROWS
    }

    /// How many of them are in use.
    pub(super) const fn taken(&self) -> usize {
        self.taken as usize
    }

    /// Whether a row has room for so many limits.
    pub(super) const fn is_wide_enough(&self, limits: usize) -> bool {
        self.is_wide || limits <= 1
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

    /// Moves a subject to a row that is free.
    pub(super) fn move_row(&mut self, from: usize, to: usize) {
        let mut words = [0; WIDE];
        let row = self.row(from).0;
        let words = &mut words[..row.len()];
        words.copy_from_slice(row);
        self.row_mut(to).0.copy_from_slice(words);
        self.row_mut(from).free();
    }

    /// A table without rows in use.
    pub(super) fn empty(buckets: u32, is_wide: bool) -> Self {
        let lines = buckets as usize * if is_wide { ROWS } else { ROWS / 2 };
        Self { lines: vec![Line::default(); lines].into(), is_wide, buckets, ..Self::default() }
    }

    pub(super) const fn buckets(&self) -> u32 {
        self.buckets
    }

    pub(super) const fn is_wide(&self) -> bool {
        self.is_wide
    }

    /// Takes over the rows of a table that all subjects of this one have been copied to.
    pub(super) fn move_into(&mut self, larger: Self) {
        (self.lines, self.buckets, self.is_wide) = (larger.lines, larger.buckets, larger.is_wide);
        self.hand = 0;
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

/// A bit for each of the four that is the wanted.
#[inline]
fn bits(hashes: [u64; ROWS], wanted: u64) -> u32 {
    let [a, b, c, d] = hashes.map(|hash| u32::from(hash == wanted));
    a | b << 1 | c << 2 | d << 3
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
