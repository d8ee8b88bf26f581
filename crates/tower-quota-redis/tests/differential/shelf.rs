//! Which subjects the store still sees: it keeps most of them in a hash per minute, and looks into two of those.

use tower_quota_core::Entry;

use super::plan::KEYS;

/// Microseconds.
const GENERATION: u64 = 60_000_000;

/// Where the store keeps each subject, by the rules at the top of `script/shelves.lua`.
#[derive(Default)]
pub(crate) struct Shelves {
    newest: u64,
    /// The generation whose hash a subject lies in; `None` for one in a string of its own.
    hash_of: [Option<u64>; KEYS.len()],
}

impl Shelves {
    fn generation(&self, now: u64) -> u64 {
        self.newest.max(now / GENERATION)
    }

    pub(crate) fn is_seen(&self, key: usize, now: u64) -> bool {
        self.hash_of[key].is_none_or(|hash| hash + 1 >= self.generation(now))
    }

    /// Notes that a subject was written at `now`.
    pub(crate) fn written(&mut self, key: usize, subject: &Entry, now: u64) {
        let generation = self.generation(now);
        let is_far_behind = generation > now / GENERATION + 1;
        let is_short = !is_far_behind && subject.whole_at().as_micros() <= (generation + 2) * GENERATION;
        self.newest = generation;
        self.hash_of[key] = (is_short && !subject.is_empty()).then_some(generation);
    }
}
