//! Every order in which a few threads can take their steps, by loom. Run by `scripts/contention`.

mod answers;
mod places;

use crate::clock::Clock;
use crate::memory::MemoryStore;
use crate::time::Timestamp;

const NOW: Timestamp = Timestamp::from_micros(1_763_683_200_000_000);

/// Makes a store on a clock that stands still, with tables for one entry each.
fn store(capacity: usize) -> MemoryStore {
    MemoryStore::with_clock(capacity, FixedClock)
}

#[derive(Debug)]
struct FixedClock;

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        NOW
    }
}
