//! Figures of a refusal cache.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::sync::thread_place;

/// The counts of a [`RefusalCache`](crate::RefusalCache) and its clones, since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefusalStats {
    /// Requests that were refused from memory, while the store was not asked.
    pub answered: u64,
    /// Refusals of a limit that were remembered, and admissions that took its last units. Each renewal counts again.
    pub remembered: u64,
    /// Refusals that gave way to others before they had run out.
    pub evicted: u64,
}

/// Numbers that many threads write at once, in places of their own.
#[derive(Debug, Default)]
pub(super) struct Stripes([Stripe; STRIPES]);

/// The places.
const STRIPES: usize = 16;

/// The numbers of the threads of one place. Processors fetch two lines at a time.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Stripe {
    /// The requests that these threads have refused from memory.
    pub(super) answered: AtomicU64,
    /// The latest instant that these threads have read.
    pub(super) latest: AtomicU64,
}

impl Stripes {
    /// Returns the place of this thread.
    pub(super) fn own(&self) -> &Stripe {
        &self.0[thread_place() % STRIPES]
    }

    pub(super) fn answered(&self) -> u64 {
        self.0
            .iter()
            .map(|stripe| stripe.answered.load(Ordering::Relaxed))
            .sum()
    }
}
