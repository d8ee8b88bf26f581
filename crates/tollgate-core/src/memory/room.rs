//! How many subjects the store may still take in, over all its shards.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Counts places. `taken` never exceeds `capacity`: a place is claimed before a subject is kept in it.
pub(super) struct Room {
    capacity: usize,
    taken: AtomicUsize,
    evicted: AtomicU64,
}

impl Room {
    pub(super) const fn new(capacity: usize) -> Self {
        Self { capacity, taken: AtomicUsize::new(0), evicted: AtomicU64::new(0) }
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

    pub(super) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    pub(super) fn evicted(&self) -> u64 {
        self.evicted.load(Ordering::Relaxed)
    }
}

/// A seed nobody outside knows, from the operating system's randomness that the standard library seeds its maps with.
pub(super) fn seed() -> [u8; 16] {
    let half = || RandomState::new().build_hasher().finish();
    (u128::from(half()) << 64 | u128::from(half())).to_le_bytes()
}
