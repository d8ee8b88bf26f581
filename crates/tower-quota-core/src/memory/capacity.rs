//! The places and counters of a store, shared by the shards.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

#[derive(Default)]
pub(super) struct Capacity {
    pub(super) capacity: usize,
    pub(super) shard_rows: usize,
    pub(super) taken: AtomicUsize,
    pub(super) entries: AtomicUsize,
    pub(super) evicted: AtomicU64,
    pub(super) evicted_limited: AtomicU64,
    pub(super) filter_hits: AtomicU64,
}

impl Capacity {
    pub(super) fn new(capacity: usize, shards: usize) -> Self {
        Self {
            capacity,
            shard_rows: capacity.div_ceil(shards).saturating_mul(4) / 3,
            ..Self::default()
        }
    }

    pub(super) fn claim(&self, places: usize) -> bool {
        let claimed = self.taken.fetch_update(Relaxed, Relaxed, |taken| {
            let taken = taken.checked_add(places)?;
            (taken <= self.capacity).then_some(taken)
        });
        claimed.is_ok()
    }

    pub(super) fn forget(&self, places: usize) {
        // Subtract the entry first, so that the number of entries never exceeds the capacity.
        self.entries.fetch_sub(1, Relaxed);
        self.taken.fetch_sub(places, Relaxed);
    }

    pub(super) fn count_eviction(&self, is_limited: bool) {
        self.evicted.fetch_add(1, Relaxed);
        self.evicted_limited.fetch_add(is_limited.into(), Relaxed);
    }
}
