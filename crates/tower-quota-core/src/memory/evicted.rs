//! What a shard remembers of evicted rows.

use super::filter::EvictedFilter;
use super::sketch::UseSketch;

/// The memory of evicted rows: their spent limits, and how often they were used.
#[derive(Default)]
pub(super) struct Evicted {
    pub(super) filter: EvictedFilter,
    pub(super) sketch: UseSketch,
    /// Limits of returning keys that were found in the filter.
    pub(super) filter_hits: u64,
    /// Evictions since the uses of the rows were halved.
    pub(super) evictions: usize,
}

impl Evicted {
    /// Returns the instant until which a limit of a key is spent, and counts the hit.
    pub(super) fn until(&mut self, limit: (u64, u32), now: u64) -> Option<u64> {
        let until = self.filter.until(limit, now);
        self.filter_hits += u64::from(until.is_some());
        until
    }

    pub(super) fn bytes(&self) -> usize {
        self.filter.bytes() + self.sketch.bytes()
    }
}
