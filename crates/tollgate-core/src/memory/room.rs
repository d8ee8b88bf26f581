//! How many subjects the store may still take in, over all its shards.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Counts places. `taken` never exceeds `capacity`: a place is claimed before a subject is kept in it.
pub(super) struct Room {
    capacity: usize,
    shards: usize,
    everyone: u128,
    taken: AtomicUsize,
    evicted: AtomicU64,
}

impl Room {
    /// Room for `capacity` subjects in so many shards; `everyone` is the digest of the subject that takes none.
    pub(super) const fn new(capacity: usize, shards: usize, everyone: u128) -> Self {
        Self { capacity, shards, everyone, taken: AtomicUsize::new(0), evicted: AtomicU64::new(0) }
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

    /// A shard's part of the capacity.
    pub(super) const fn share(&self) -> usize {
        self.capacity.div_ceil(self.shards)
    }

    pub(super) const fn everyone(&self) -> u128 {
        self.everyone
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
