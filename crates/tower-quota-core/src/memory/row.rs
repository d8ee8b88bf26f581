//! Rows: entries in 24 or 56 bytes.
//!
//! | word | narrow: one limit | wide: up to four |
//! |---|---|---|
//! | 0 | the key's hash; 0 in a free row | the same |
//! | 1 | the instant of the last change, in microseconds (53 bits); the number of the limit (11) | the instant |
//! | 2 | the count (52 bits); marks (12) | the numbers of the limits (44), how many there are (3); marks (12) |
//! | 3 to 6 | | the counts |
//!
//! A count is a bucket's used grains, or a window's counted units, as of the instant. The marks say whether the entry
//! is kept outside the table, whether it was refused the last time, and how often it was charged or refused (8 bits).

use crate::time::Timestamp;

/// Bits of a number.
pub(super) const NUMBER_BITS: u32 = 11;
/// The number that no limit gets.
pub(super) const NO_NUMBER: u16 = (1 << NUMBER_BITS) - 1;
/// Words of a row that has one limit.
pub(super) const NARROW: usize = 3;
/// Words of a row that has up to four.
pub(super) const WIDE: usize = 7;
/// Limits of a wide row.
pub(super) const MOST_LIMITS: usize = 4;

/// The word that holds the key's hash.
pub(super) const HASH: usize = 0;
const AT: usize = 1;
const MARKS: usize = 2;
/// The first of a wide row's counts.
const COUNTS: usize = 3;

/// Bits of an instant.
const AT_BITS: u32 = u64::BITS - NUMBER_BITS;
const INSTANT: u64 = (1 << AT_BITS) - 1;
/// The latest instant that a row can hold: in the year 2255.
pub(super) const LATEST: Timestamp = Timestamp::from_micros(INSTANT);
/// Bits of a narrow row's count.
const COUNT_BITS: u32 = 52;
const COUNT: u64 = (1 << COUNT_BITS) - 1;
const NUMBER: u64 = (1 << NUMBER_BITS) - 1;
/// The first bit of a wide row's number of limits.
const LIMITS_AT: u32 = 44;
const LIMITS: u64 = 0x7;

const ELSEWHERE: u64 = 1 << 52;
const REFUSED: u64 = 1 << 53;
/// One use. The uses are the highest bits, so that one more than the largest count overflows the word.
const ONE_USE: u64 = 1 << 56;

/// A row that is read.
#[derive(Clone, Copy)]
pub(super) struct Row<'a>(pub(super) &'a [u64]);

/// A row that is written.
pub(super) struct RowMut<'a>(pub(super) &'a mut [u64]);

/// One limit in a row: its number and its count.
#[derive(Clone, Copy, Default)]
pub(super) struct Count {
    pub(super) number: u16,
    pub(super) value: u64,
}

/// The effect of a request on an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    Charged,
    Refused,
    Neither,
}

impl Count {
    /// Returns whether a narrow row has room for it.
    pub(super) const fn is_small(self) -> bool {
        self.value <= COUNT
    }
}

impl<'a> Row<'a> {
    #[inline]
    pub(super) fn hash(self) -> u64 {
        self.0[HASH]
    }

    #[inline]
    pub(super) fn is_free(self) -> bool {
        self.0[HASH] == 0
    }

    #[inline]
    pub(super) fn at(self) -> u64 {
        self.0[AT] & INSTANT
    }

    /// Returns how many limits it has: none if the entry is kept outside the table.
    #[inline]
    pub(super) fn limits(self) -> usize {
        match self.is_narrow() {
            true => usize::from(!self.is_elsewhere()),
            false => (self.0[MARKS] >> LIMITS_AT & LIMITS) as usize,
        }
    }

    /// Returns whether the row may have this many limits: a narrow row has one, or a number that no limit has.
    #[inline]
    pub(super) fn may_have(self, limits: usize) -> bool {
        self.is_narrow() || self.limits() >= limits
    }

    /// Returns whether a count fits into it.
    #[inline]
    pub(super) fn has_room_for(self, count: Count) -> bool {
        !self.is_narrow() || count.is_small()
    }

    /// Returns what its limits have counted.
    pub(super) fn counts(self) -> impl Iterator<Item = Count> + 'a {
        (0..self.limits()).map(move |limit| self.count(limit))
    }

    /// Returns the limit at a position.
    #[inline]
    pub(super) fn count(self, limit: usize) -> Count {
        Count {
            number: self.number(limit),
            value: self.value(limit),
        }
    }

    /// Returns the number of the limit at a position.
    #[inline]
    pub(super) fn number(self, limit: usize) -> u16 {
        match self.is_narrow() {
            true => (self.0[AT] >> AT_BITS) as u16,
            false => (self.0[MARKS] >> (NUMBER_BITS as usize * limit) & NUMBER) as u16,
        }
    }

    /// Returns what the limit at a position has counted.
    #[inline]
    pub(super) fn value(self, limit: usize) -> u64 {
        if self.is_narrow() {
            self.0[MARKS] & COUNT
        } else {
            self.0[COUNTS + limit]
        }
    }

    pub(super) fn is_elsewhere(self) -> bool {
        self.0[MARKS] & ELSEWHERE != 0
    }

    /// Returns whether the entry was refused the last time.
    pub(super) fn was_refused(self) -> bool {
        self.0[MARKS] & REFUSED != 0
    }

    /// Returns how often the entry was charged or refused, at most 255.
    pub(super) fn uses(self) -> u64 {
        self.0[MARKS] / ONE_USE
    }

    #[inline]
    const fn is_narrow(self) -> bool {
        self.0.len() == NARROW
    }
}

impl RowMut<'_> {
    #[inline]
    pub(super) const fn read(&self) -> Row<'_> {
        Row(self.0)
    }

    /// Makes this the row of a key, with nothing counted yet.
    pub(super) fn begin(&mut self, hash: u64) {
        self.0.fill(0);
        self.0[HASH] = hash;
    }

    /// Copies another row, which may be narrower.
    pub(super) fn copy(&mut self, row: Row<'_>) {
        if self.0.len() == row.0.len() {
            self.0.copy_from_slice(row.0);
            return;
        }
        self.begin(row.hash());
        self.set_at(row.at());
        self.0[MARKS] = row.0[MARKS] & !COUNT;
        match row.is_elsewhere() {
            true => self.keep_elsewhere(),
            false => self.set_counts(&[row.count(0)]),
        }
    }

    /// Sets the instant of the last change.
    #[inline]
    pub(super) fn set_at(&mut self, at: u64) {
        self.0[AT] = self.0[AT] & !INSTANT | at;
    }

    /// Notes the effect of a request.
    #[inline]
    pub(super) fn mark(&mut self, mark: Mark) {
        let refused = match mark {
            Mark::Charged => 0,
            Mark::Refused => REFUSED,
            Mark::Neither => return,
        };
        let (marks, is_full) = (self.0[MARKS] & !REFUSED | refused).overflowing_add(ONE_USE);
        self.0[MARKS] = if is_full {
            marks.wrapping_sub(ONE_USE)
        } else {
            marks
        };
    }

    /// Replaces its limits by these, as many as it has room for.
    #[inline]
    pub(super) fn set_counts(&mut self, counts: &[Count]) {
        self.0[MARKS] &= !ELSEWHERE;
        if self.0.len() == WIDE {
            self.0[MARKS] = self.0[MARKS] & !COUNT | (counts.len() as u64) << LIMITS_AT;
        } else if counts.is_empty() {
            self.set_number(0, NO_NUMBER);
        }
        for (limit, count) in counts.iter().enumerate() {
            self.set_number(limit, count.number);
            self.set_value(limit, count.value);
        }
    }

    /// Notes that its entry is kept outside the table.
    pub(super) fn keep_elsewhere(&mut self) {
        self.set_counts(&[]);
        self.0[MARKS] |= ELSEWHERE;
    }

    /// Replaces the number of the limit at a position.
    #[inline]
    pub(super) fn set_number(&mut self, limit: usize, number: u16) {
        let (word, at) = match self.read().is_narrow() {
            true => (AT, AT_BITS as usize),
            false => (MARKS, NUMBER_BITS as usize * limit),
        };
        self.0[word] = self.0[word] & !(NUMBER << at) | u64::from(number) << at;
    }

    /// Replaces what the limit at a position has counted.
    #[inline]
    pub(super) fn set_value(&mut self, limit: usize, value: u64) {
        if self.read().is_narrow() {
            self.0[MARKS] = self.0[MARKS] & !COUNT | value;
        } else {
            self.0[COUNTS + limit] = value;
        }
    }
}
