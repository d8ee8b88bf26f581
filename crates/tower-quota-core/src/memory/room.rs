//! How many subjects the store may still take in, over all its tables.

use super::sync::{AtomicU64, AtomicUsize, Ordering};

/// Counts places. `taken` never exceeds `capacity`: a place is claimed before a subject is kept in it.
pub(super) struct Room {
    capacity: usize,
    tables: usize,
    taken: AtomicUsize,
    evicted: AtomicU64,
}

impl Room {
    /// Room for `capacity` subjects in so many tables.
    pub(super) fn new(capacity: usize, tables: usize) -> Self {
        Self { capacity, tables, taken: AtomicUsize::new(0), evicted: AtomicU64::new(0) }
    }

    /// Claims a place if one is free.
    pub(super) fn claim(&self) -> bool {
        let claimed = self
            .taken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| (taken < self.capacity).then_some(taken + 1));
        claimed.is_ok()
    }

    pub(super) fn release(&self) {
        self.release_all(1);
    }

    /// Gives this many places back at once.
    pub(super) fn release_all(&self, places: usize) {
        self.taken.fetch_sub(places, Ordering::Relaxed);
    }

    pub(super) fn count_eviction(&self) {
        self.evicted.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) const fn capacity(&self) -> usize {
        self.capacity
    }

    /// A table's part of the capacity.
    pub(super) const fn share(&self) -> usize {
        self.capacity.div_ceil(self.tables)
    }

    pub(super) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    pub(super) fn evicted(&self) -> u64 {
        self.evicted.load(Ordering::Relaxed)
    }
}
