//! Limited subjects that had to go, remembered by a few bits each.
//!
//! Two Bloom filters (Bloom, 1970) take turns: the young one takes in, the old one still answers. A subject stays in
//! at least until it would have been whole. Some strangers are taken for ghosts: 1 in 200 once as many were taken in
//! as the shard has places, 1 in 11 at three times as many.

use crate::time::Timestamp;

/// Bits for every place of the shard, in each filter.
const BITS_PER_PLACE: usize = 16;
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
}

impl Default for Ghosts {
    fn default() -> Self {
        Self { young: Box::default(), old: Box::default(), turns_at: NEVER, longest: 0 }
    }
}

impl Ghosts {
    /// Takes in a subject that would be whole at `whole_at`; `places` is what the shard has room for.
    pub(super) fn remember(&mut self, digest: u128, whole_at: Timestamp, now: Timestamp, places: usize) {
        self.turn(now);
        if self.young.is_empty() {
            self.young = vec![0; (places * BITS_PER_PLACE).div_ceil(64)].into();
        }
        let lasts = whole_at.as_micros().saturating_sub(now.as_micros());
        if self.turns_at == NEVER {
            self.turns_at = now.as_micros().saturating_add(lasts);
        }
        self.longest = self.longest.max(lasts);
        for (word, bit) in bits(digest, self.young.len()) {
            self.young[word] |= bit;
        }
    }

    /// Whether this may be a subject that was limited when it had to go and would not be whole yet.
    pub(super) fn knows(&mut self, digest: u128, now: Timestamp) -> bool {
        self.turn(now);
        [&self.young, &self.old]
            .into_iter()
            .any(|filter| !filter.is_empty() && bits(digest, filter.len()).all(|(word, bit)| filter[word] & bit != 0))
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
        if self.old.is_empty() || now.as_micros() >= self.turns_at {
            self.old = Box::default();
            self.turns_at = NEVER;
        }
    }
}

/// Three bits of a filter of so many words, by parts of the digest that do not choose the shard.
fn bits(digest: u128, words: usize) -> impl Iterator<Item = (usize, u64)> {
    (0..3).map(move |part| {
        #[expect(clippy::cast_possible_truncation, reason = "32 bits are wanted")]
        let random = (digest >> (32 * part)) as u32;
        let bit = random as usize % (words * 64);
        (bit / 64, 1 << (bit % 64))
    })
}
