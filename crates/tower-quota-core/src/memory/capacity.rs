//! The places of a store, which all its shards share.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// The places and counts of a store. A place is claimed before a row is kept in it.
#[derive(Default)]
pub(super) struct Capacity {
    pub(super) capacity: usize,
    /// The places in use.
    pub(super) taken: AtomicUsize,
    /// The rows, of which one with a long log takes several places.
    pub(super) entries: AtomicUsize,
    /// Rows that were evicted before they were full.
    pub(super) evicted: AtomicU64,
    /// Evicted rows with a spent limit.
    pub(super) evicted_limited: AtomicU64,
    pub(super) filter_hits: AtomicU64,
}

impl Capacity {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            ..Self::default()
        }
    }

    /// Claims places if so many are free.
    pub(super) fn claim(&self, places: usize) -> bool {
        let claimed = self.taken.fetch_update(Relaxed, Relaxed, |taken| {
            let taken = taken.checked_add(places)?;
            (taken <= self.capacity).then_some(taken)
        });
        claimed.is_ok()
    }

    /// Removes a row that had claimed this many places.
    pub(super) fn forget(&self, places: usize) {
        // In this order there are never more entries than places.
        self.entries.fetch_sub(1, Relaxed);
        self.taken.fetch_sub(places, Relaxed);
    }

    pub(super) fn count_eviction(&self, is_limited: bool) {
        self.evicted.fetch_add(1, Relaxed);
        self.evicted_limited.fetch_add(is_limited.into(), Relaxed);
    }
}
