//! Limited subjects that had to go, remembered by a few bits each.
//!
//! Two Bloom filters (Bloom, 1970) take turns: the young one takes in, the old one still answers. A subject stays in
//! at least until it would have been whole. Some strangers are taken for ghosts: 1 in 600 once a filter has taken in as
//! many as the table has places, 1 in 33 at three times as many. It takes in no more than that: a flood of limited
//! subjects would lock strangers out, and some who had to go are better let go.

use crate::time::Timestamp;

/// Bits for every place of the table, in each filter.
const BITS_PER_PLACE: usize = 24;
/// Subjects that a filter takes in at most, for every place.
const MOST_PER_PLACE: usize = 3;
/// When two empty filters take turns.
const NEVER: u64 = u64::MAX;

pub(super) struct Ghosts {
    /// No words until the first ghost.
    young: Box<[u64]>,
    old: Box<[u64]>,
    /// When the young filter becomes the old one.
    turns_at: u64,
    /// The longest that one of the young has to be remembered, in microseconds.
    longest: u64,
    /// How many the young filter has taken in.
    taken_in: usize,
}

impl Default for Ghosts {
    fn default() -> Self {
        Self { young: Box::default(), old: Box::default(), turns_at: NEVER, longest: 0, taken_in: 0 }
    }
}

impl Ghosts {
    /// Takes in a subject that would be whole at `whole_at`; `places` is what the table has room for.
    pub(super) fn remember(&mut self, hash: u64, whole_at: Timestamp, now: Timestamp, places: usize) {
        self.turn(now);
        if self.young.is_empty() {
            self.young = vec![0; (places * BITS_PER_PLACE).div_ceil(64)].into();
        }
        if !holds(&self.young, hash) {
            if self.taken_in >= MOST_PER_PLACE * places {
                return;
            }
            self.taken_in += 1;
        }
        let lasts = whole_at.as_micros().saturating_sub(now.as_micros());
        if self.turns_at == NEVER {
            self.turns_at = now.as_micros().saturating_add(lasts);
        }
        self.longest = self.longest.max(lasts);
        for (word, bit) in bits(hash, self.young.len()) {
            self.young[word] |= bit;
        }
    }

    /// Whether this may be a subject that was limited when it had to go and would not be whole yet.
    pub(super) fn knows(&mut self, hash: u64, now: Timestamp) -> bool {
        self.turn(now);
        holds(&self.young, hash) || holds(&self.old, hash)
    }

    /// The young grow old when their time has come. All of them were taken in before it, so they are whole when the
    /// longest of their times has passed once more.
    fn turn(&mut self, now: Timestamp) {
        if now.as_micros() < self.turns_at {
            return;
        }
        self.old = core::mem::take(&mut self.young);
        self.turns_at = self.turns_at.saturating_add(self.longest);
        self.longest = 0;
        self.taken_in = 0;
        if self.old.is_empty() || now.as_micros() >= self.turns_at {
            self.old = Box::default();
            self.turns_at = NEVER;
        }
    }
}

fn holds(filter: &[u64], hash: u64) -> bool {
    !filter.is_empty() && bits(hash, filter.len()).all(|(word, bit)| filter[word] & bit != 0)
}

/// Three bits of a filter of so many words.
fn bits(hash: u64, words: usize) -> impl Iterator<Item = (usize, u64)> {
    // Some of the hash's own bits have chosen the table: three products by odd numbers bring all of them to the top.
    [0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb].into_iter().map(move |odd: u64| {
        let random = u128::from(hash.wrapping_mul(odd));
        #[expect(clippy::cast_possible_truncation, reason = "less than the number of bits")]
        let bit = ((random * (words as u128 * 64)) >> 64) as usize;
        (bit / 64, 1 << (bit % 64))
    })
}
