//! Figures of a refusal cache.

use core::sync::atomic::{AtomicU64, Ordering};

/// The counts of a [`RefusalCache`](crate::RefusalCache) and its clones, since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefusalStats {
    /// Requests that were refused from memory, while the store was not asked.
    pub answered: u64,
    /// Refusals of a limit that were remembered. A refusal that is renewed counts again.
    pub remembered: u64,
    /// Refusals that gave way to others before they had run out.
    pub evicted: u64,
}

/// A count that only grows.
#[derive(Debug, Default)]
pub(super) struct EventCount(AtomicU64);

impl EventCount {
    pub(super) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
