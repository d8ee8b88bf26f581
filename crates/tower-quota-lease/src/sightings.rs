//! Sightings: keys that ask again soon, found without a place for each key.
//!
//! Most keys of a large service ask once. They must not cost memory, and not the time to make a pool. So a key gets a pool
//! only when it is seen again: an array of counters that start anew in each span, as the doorkeeper of TinyLFU
//! (Einziger, Friedman, Manes, 2017). Keys that share a counter may get a pool a request early, which does no harm.

use core::sync::atomic::{AtomicU32, Ordering};

/// One for each value of 16 bits: 256 KB.
const COUNTERS: usize = 1 << 16;
/// The time for which a counter counts, in microseconds.
const SPAN: u64 = 100_000;
/// Bits of a count. Those above hold the number of its span.
const COUNT_BITS: u32 = 8;
const COUNT: u32 = (1 << COUNT_BITS) - 1;

/// The number of times that each key was seen in the present span.
#[derive(Debug)]
pub(crate) struct Sightings(Box<[AtomicU32]>);

impl Sightings {
    pub(crate) fn new() -> Self {
        Self((0..COUNTERS).map(|_| AtomicU32::new(0)).collect())
    }

    /// Records that a key is seen, and returns how often it was in this span. Threads that meet may miss one.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the lowest bits of a hash, and of the number of a span"
    )]
    pub(crate) fn note(&self, digest: u128, now: u64) -> u32 {
        // Other bits than those that choose a shard.
        let counter = &self.0[usize::from((digest >> 64) as u16)];
        let span = (now / SPAN) as u32 & (u32::MAX >> COUNT_BITS);
        let known = counter.load(Ordering::Relaxed);
        let before = if known >> COUNT_BITS == span {
            known & COUNT
        } else {
            0
        };
        let count = (before + 1).min(COUNT);
        counter.store(span << COUNT_BITS | count, Ordering::Relaxed);
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sightings_count_within_span() {
        let sightings = Sightings::new();
        let counts: Vec<u32> = (0..3).map(|_| sightings.note(7 << 64, 5 * SPAN)).collect();
        assert_eq!(counts, [1, 2, 3]);
        assert_eq!(sightings.note(7 << 64, 6 * SPAN), 1);
        assert_eq!(sightings.note(8 << 64, 6 * SPAN), 1);
        for _ in 0..1_000 {
            sightings.note(9 << 64, 6 * SPAN);
        }
        assert_eq!(sightings.note(9 << 64, 6 * SPAN), COUNT);
    }
}
