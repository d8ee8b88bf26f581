//! Figures of a refusal cache.

use core::cell::Cell;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

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

/// A count that many threads add to at once, in places of their own.
#[derive(Debug, Default)]
pub(super) struct StripedCount([Stripe; STRIPES]);

/// The places.
const STRIPES: usize = 16;

/// Processors fetch two lines at a time.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Stripe(AtomicU64);

impl StripedCount {
    pub(super) fn add_one(&self) {
        self.0[stripe()].0.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.iter().map(|stripe| stripe.0.load(Ordering::Relaxed)).sum()
    }
}

/// Returns the place of this thread. Threads take places in turn.
fn stripe() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static STRIPE: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    STRIPE.with(|stripe| {
        if stripe.get() == usize::MAX {
            stripe.set(NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES);
        }
        stripe.get()
    })
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
