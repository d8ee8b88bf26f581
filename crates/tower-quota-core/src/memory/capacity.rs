//! The places of a store, which all its tables share.

use crate::sync::{AtomicU64, AtomicUsize, Ordering};

/// A counter of places. `taken` never exceeds `capacity`: a place is claimed before an entry is kept in it.
pub(super) struct Capacity {
    pub(super) capacity: usize,
    /// The part of one table.
    pub(super) share: usize,
    taken: AtomicUsize,
    evicted: AtomicU64,
    evicted_limited: AtomicU64,
}

impl Capacity {
    /// Creates room for `capacity` entries in this many tables.
    pub(super) fn new(capacity: usize, tables: usize) -> Self {
        let (taken, evicted, evicted_limited) =
            (AtomicUsize::new(0), AtomicU64::new(0), AtomicU64::new(0));
        Self {
            capacity,
            share: capacity.div_ceil(tables),
            taken,
            evicted,
            evicted_limited,
        }
    }

    /// Claims a place if one is free.
    pub(super) fn claim(&self) -> bool {
        let claimed = self
            .taken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| {
                (taken < self.capacity).then_some(taken + 1)
            });
        claimed.is_ok()
    }

    /// Gives this many places back.
    pub(super) fn release(&self, places: usize) {
        self.taken.fetch_sub(places, Ordering::Relaxed);
    }

    /// Counts an entry that was evicted before it was full. It is limited if one of its limits was spent.
    pub(super) fn count_eviction(&self, is_limited: bool) {
        self.evicted.fetch_add(1, Ordering::Relaxed);
        if is_limited {
            self.evicted_limited.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    pub(super) fn evicted(&self) -> u64 {
        self.evicted.load(Ordering::Relaxed)
    }

    pub(super) fn evicted_limited(&self) -> u64 {
        self.evicted_limited.load(Ordering::Relaxed)
    }
}
