//! Rows: all that is kept of a subject, in 32 or 64 bytes.
//!
//! | word | holds |
//! |---|---|
//! | 0 | what stands for the key; 0 in a row that is free |
//! | 1 | the instant of the last charge, in microseconds |
//! | 2 | [`Summary`]: what to know of a subject without looking at its limits |
//! | 3 | narrow: the count of the one limit; wide: the numbers of four limits |
//! | 4 to 7 | wide: the counts of four limits |

/// Words of a row that has one limit.
pub(super) const NARROW: usize = 4;
/// Words of a row that has up to four.
pub(super) const WIDE: usize = 8;
/// Limits of a wide row.
pub(super) const MOST_LIMITS: usize = 4;

/// The word that holds what stands for the key.
pub(super) const HASH: usize = 0;
const AT: usize = 1;
const SUMMARY: usize = 2;
const NUMBERS: usize = 3;

/// A row, to be read.
#[derive(Clone, Copy)]
pub(super) struct Row<'a>(pub(super) &'a [u64]);

/// A row, to be written.
pub(super) struct RowMut<'a>(pub(super) &'a mut [u64]);

/// One limit in a row: its number, and what it has counted.
#[derive(Clone, Copy, Default)]
pub(super) struct Count {
    pub(super) number: u16,
    pub(super) value: u64,
}

/// The second from which the subject is whole (32 bits), the number of its first limit (16), how often it was charged or
/// refused (8), whether the last time has left it nothing of some limit (1), or it was refused (1), whether it is kept
/// elsewhere (1), how many limits it has (3).
#[derive(Clone, Copy)]
pub(super) struct Summary(u64);

const ELSEWHERE: u64 = 1 << 3;
const REFUSED: u64 = 1 << 4;
const SPENT: u64 = 1 << 5;
const ONE_USE: u64 = 1 << 8;
const USES: u64 = 0xff << 8;
const LIMITS: u64 = 0x7;
/// The second that never comes.
const NEVER: u64 = u32::MAX as u64;
/// A second of 2^20 microseconds: found by a shift.
const SECOND: u32 = 20;

/// What a request has done to a subject.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// It has taken something, and perhaps left nothing of some limit.
    Charged {
        /// Whether it has.
        spent: bool,
    },
    Refused,
    Other,
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
        self.0[AT]
    }

    #[inline]
    pub(super) fn summary(self) -> Summary {
        Summary(self.0[SUMMARY])
    }

    /// What its limits have counted.
    pub(super) fn counts(self) -> impl Iterator<Item = Count> + 'a {
        (0..self.summary().limits()).map(move |limit| Count { number: self.number(limit), value: self.value(limit) })
    }

    /// The number of the limit at a position.
    #[inline]
    pub(super) fn number(self, limit: usize) -> u16 {
        if self.0.len() == NARROW { self.summary().number() } else { number_at(self.0[NUMBERS], limit) }
    }

    /// What the limit at a position has counted.
    #[inline]
    pub(super) fn value(self, limit: usize) -> u64 {
        self.0[first_value(self.0.len()) + limit]
    }
}

impl RowMut<'_> {
    #[inline]
    pub(super) const fn read(&self) -> Row<'_> {
        Row(self.0)
    }

    /// Makes it the row of a key, with nothing counted yet.
    pub(super) fn begin(&mut self, hash: u64) {
        self.0.fill(0);
        self.0[HASH] = hash;
    }

    pub(super) fn free(&mut self) {
        self.0[HASH] = 0;
    }

    /// Makes it the same as another row, which may be narrower.
    pub(super) fn copy(&mut self, row: Row<'_>) {
        if self.0.len() == row.0.len() {
            self.0.copy_from_slice(row.0);
        } else {
            self.begin(row.hash());
            self.update(row.at(), row.summary());
            row.counts().enumerate().for_each(|(limit, count)| self.set_count(limit, count));
        }
    }

    /// Takes note of a charge.
    #[inline]
    pub(super) fn update(&mut self, at: u64, summary: Summary) {
        self.0[AT] = at;
        self.0[SUMMARY] = summary.0;
    }

    /// Takes note of what the limit at a position has counted. The number of a narrow row's is in the summary.
    pub(super) fn set_count(&mut self, limit: usize, count: Count) {
        if self.0.len() == WIDE {
            let others = self.0[NUMBERS] & !(0xffff << (16 * limit));
            self.0[NUMBERS] = others | u64::from(count.number) << (16 * limit);
        }
        self.set_value(limit, count.value);
    }

    /// Replaces what the limit at a position has counted.
    #[inline]
    pub(super) fn set_value(&mut self, limit: usize, value: u64) {
        let first = first_value(self.0.len());
        self.0[first + limit] = value;
    }
}

impl Summary {
    /// How many limits the row has.
    #[inline]
    pub(super) const fn limits(self) -> usize {
        (self.0 & LIMITS) as usize
    }

    /// Of a narrow row, the number of its limit.
    #[inline]
    pub(super) fn number(self) -> u16 {
        number_at(self.0, 1)
    }

    pub(super) const fn is_elsewhere(self) -> bool {
        self.0 & ELSEWHERE != 0
    }

    /// Whether the subject was refused the last time.
    pub(super) const fn was_refused(self) -> bool {
        self.0 & REFUSED != 0
    }

    /// Whether the last time has left it nothing of some limit, or it was refused.
    pub(super) const fn was_limited(self) -> bool {
        self.0 & (REFUSED | SPENT) != 0
    }

    /// How often the subject was charged or refused, as far as that can be counted here.
    pub(super) const fn uses(self) -> u64 {
        (self.0 & USES) / ONE_USE
    }

    /// Whether the subject is surely whole.
    pub(super) const fn is_whole(self, now: u64) -> bool {
        let second = self.whole_second();
        second <= now >> SECOND && second < NEVER
    }

    /// The first full second in which the subject is whole.
    pub(super) const fn whole_second(self) -> u64 {
        self.0 >> 32
    }

    /// The same of so many limits, the first of which has this number.
    pub(super) fn with_limits(self, limits: usize, number: u16) -> Self {
        Self(self.0 & !(0xffff << 16 | LIMITS | ELSEWHERE) | u64::from(number) << 16 | limits as u64)
    }

    /// The same of a subject that is kept elsewhere.
    pub(super) fn kept_elsewhere(self) -> Self {
        Self(self.with_limits(0, 0).0 | ELSEWHERE)
    }

    /// The same, but whole at this instant.
    #[inline]
    pub(super) fn whole_at(self, micros: u64) -> Self {
        let second = (micros >> SECOND) + 1;
        Self(self.0 & 0xffff_ffff | second.min(NEVER) << 32)
    }

    /// The same, charged or refused once more.
    #[inline]
    pub(super) const fn used(self, use_of_it: Use) -> Self {
        let how = match use_of_it {
            Use::Charged { spent: false } => 0,
            Use::Charged { spent: true } => SPENT,
            Use::Refused => REFUSED,
            Use::Other => return self,
        };
        let one_more = if self.0 & USES == USES { 0 } else { ONE_USE };
        Self(((self.0 & !(REFUSED | SPENT)) + one_more) | how)
    }
}

/// The position of the first count in a row of so many words.
#[inline]
const fn first_value(words: usize) -> usize {
    if words == NARROW { NARROW - 1 } else { WIDE - MOST_LIMITS }
}

/// One of the four numbers in a word.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "16 bits are wanted")]
const fn number_at(word: u64, position: usize) -> u16 {
    (word >> (16 * position)) as u16
}
