//! Buckets of a table: rows that are searched together.

use super::row::{HASH, RowMut};

/// Rows of a bucket.
pub(super) const ROWS: usize = 5;
/// The hash of a free row.
pub(super) const FREE: u64 = 0;

/// Five rows, and a tag for each: two cache lines of narrow rows, four and a half of wide ones, or parts of one more.
///
/// The tags of all rows are compared in a few instructions, as in F14 and Swiss tables, but within one word. If a tag is
/// the wanted one, their difference is zero, and subtracting one borrows from its highest bit.
#[derive(Clone, Copy)]
#[repr(align(32))]
pub(super) struct TableBucket<const W: usize> {
    tags: u64,
    rows: [[u64; W]; ROWS],
}

/// Bits of a tag: its highest says that the row is in use.
const TAG_BITS: usize = 12;
const IN_USE: u64 = 1 << (TAG_BITS - 1);
/// The lowest bits of all tags.
const LOWEST: u64 = 0x0001_0010_0100_1001;
const HIGHEST: u64 = LOWEST << (TAG_BITS - 1);
/// The bit above the tags: an entry may be in its second bucket instead of this one. It stays until the table is
/// rewritten.
const SPILLED: u64 = 1 << (ROWS * TAG_BITS);

impl<const W: usize> TableBucket<W> {
    pub(super) const EMPTY: Self = Self {
        tags: 0,
        rows: [[0; W]; ROWS],
    };

    #[inline]
    pub(super) const fn rows(&self) -> &[[u64; W]; ROWS] {
        &self.rows
    }

    #[inline]
    pub(super) fn row_mut(&mut self, row: usize) -> &mut [u64; W] {
        &mut self.rows[row]
    }

    /// Copies a row into a free one.
    #[inline]
    pub(super) fn put(&mut self, row: usize, words: &[u64; W]) {
        self.set_tag(row, words[HASH]);
        self.rows[row] = *words;
    }

    /// Gives a row to a key, with nothing counted yet, or makes it free.
    pub(super) fn assign(&mut self, row: usize, hash: u64) {
        self.set_tag(row, hash);
        RowMut(&mut self.rows[row]).begin(hash);
    }

    #[inline]
    const fn set_tag(&mut self, row: usize, hash: u64) {
        let at = row * TAG_BITS;
        let tag = if hash == FREE { 0 } else { tag(hash) };
        self.tags = self.tags & !(tag_mask() << at) | tag << at;
    }

    /// Notes that an entry is in its second bucket instead of this one.
    #[inline]
    pub(super) const fn spill(&mut self) {
        self.tags |= SPILLED;
    }

    /// Returns whether an entry that is not here may be in its second bucket.
    #[inline]
    pub(super) const fn has_spilled(&self) -> bool {
        self.tags & SPILLED != 0
    }

    /// Returns a free row.
    #[inline]
    pub(super) const fn free(&self) -> Option<usize> {
        match (!self.tags & HIGHEST).trailing_zeros() {
            u64::BITS => None,
            bits => Some(bits as usize / TAG_BITS),
        }
    }

    /// Returns the first word of an entry's row.
    #[inline]
    pub(super) fn find(&self, hash: u64) -> Option<usize> {
        let difference = self.tags ^ LOWEST.wrapping_mul(tag(hash));
        let same = difference.wrapping_sub(LOWEST) & !difference & HIGHEST;
        // The lowest is right; those above it may be due to the borrow. If there is none, the row is beyond the last one.
        let word = first_word::<W>(same.trailing_zeros());
        if self.words().get(word..word + W)?[HASH] == hash {
            Some(word)
        } else {
            self.find_among_same(hash)
        }
    }

    /// Returns the first word of the row of an entry whose tag others share.
    #[cold]
    fn find_among_same(&self, hash: u64) -> Option<usize> {
        self.words()
            .iter()
            .step_by(W)
            .position(|word| *word == hash)
            .map(|row| row * W)
    }

    #[inline]
    const fn words(&self) -> &[u64] {
        self.rows.as_flattened()
    }

    /// Returns the row that begins with a word.
    #[inline]
    pub(super) fn row_at(&mut self, word: usize) -> Option<&mut [u64; W]> {
        self.rows
            .as_flattened_mut()
            .get_mut(word..word + W)?
            .try_into()
            .ok()
    }
}

/// Returns the first word of the row whose tag has its highest bit here.
///
/// A tag has four bits for each word of a narrow row, so that this is a shift there. The row's address depends on it, and
/// a check can do nothing else meanwhile.
#[inline]
const fn first_word<const W: usize>(highest: u32) -> usize {
    (highest - HIGHEST.trailing_zeros()) as usize * W / TAG_BITS
}

/// Returns the tag of an entry: the bits of its hash that matter least to the choice of its buckets.
#[inline]
const fn tag(hash: u64) -> u64 {
    hash & (IN_USE - 1) | IN_USE
}

const fn tag_mask() -> u64 {
    (1 << TAG_BITS) - 1
}
