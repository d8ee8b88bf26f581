//! The places of a store, which all its shards share.

use core::sync::atomic::{AtomicIsize, AtomicU64, AtomicUsize, Ordering};

/// The places and counts of a store. A place is claimed before a row is kept in it.
pub(super) struct Capacity {
    pub(super) capacity: usize,
    /// The places in use.
    taken: AtomicUsize,
    /// The rows, of which one with a long log takes several places.
    entries: AtomicIsize,
    evicted: AtomicU64,
    evicted_limited: AtomicU64,
}

impl Capacity {
    pub(super) const fn new(capacity: usize) -> Self {
        Self {
            capacity,
            taken: AtomicUsize::new(0),
            entries: AtomicIsize::new(0),
            evicted: AtomicU64::new(0),
            evicted_limited: AtomicU64::new(0),
        }
    }

    /// Claims places if so many are free.
    pub(super) fn claim(&self, places: usize) -> bool {
        let claimed = self
            .taken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| {
                let taken = taken.checked_add(places)?;
                (taken <= self.capacity).then_some(taken)
            });
        claimed.is_ok()
    }

    /// Claims places also beyond the capacity.
    pub(super) fn claim_beyond(&self, places: usize) {
        self.taken.fetch_add(places, Ordering::Relaxed);
    }

    pub(super) fn release(&self, places: usize) {
        self.taken.fetch_sub(places, Ordering::Relaxed);
    }

    pub(super) fn count_entries(&self, added: isize) {
        self.entries.fetch_add(added, Ordering::Relaxed);
    }

    /// Counts a row that was evicted before it was full. It is limited if one of its limits was spent.
    pub(super) fn count_eviction(&self, is_limited: bool) {
        self.evicted.fetch_add(1, Ordering::Relaxed);
        if is_limited {
            self.evicted_limited.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn entries(&self) -> usize {
        self.entries.load(Ordering::Relaxed).max(0).cast_unsigned()
    }

    pub(super) fn evicted(&self) -> u64 {
        self.evicted.load(Ordering::Relaxed)
    }

    pub(super) fn evicted_limited(&self) -> u64 {
        self.evicted_limited.load(Ordering::Relaxed)
    }
}
