//! The counters of this process, used while the store is unavailable.

use core::sync::atomic::{AtomicU64, Ordering};

use tower_quota_core::{Charge, Decision, MemoryStore, Operation, Store};

/// The time without local decisions before the counters are discarded, in microseconds.
///
/// Without it, a store that answers now and then, or one with a single failed node, would discard the counters while
/// they are needed, and no client would be limited.
const RECOVERY_GRACE_MICROS: u64 = 1_000_000;

/// The value for no instant.
const NEVER: u64 = 0;

/// Local counters. They start full, and are discarded at the store's first answer after a second without local decisions.
#[derive(Debug, Default)]
pub(crate) struct LocalCounters {
    store: MemoryStore,
    /// The last instant at which something was counted, in microseconds, or `NEVER`.
    counted_at: AtomicU64,
}

impl LocalCounters {
    pub(crate) const fn new(store: MemoryStore) -> Self {
        Self { store, counted_at: AtomicU64::new(NEVER) }
    }

    /// Applies an operation to the local counters.
    pub(crate) fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Decision {
        let Ok(decision) = self.store.apply(operation, charges).into_inner();
        // This comes after the count. Before it, a recovery in between would leave the count behind.
        self.counted_at.store(decision.at().as_micros().max(1), Ordering::Release);
        decision
    }

    /// Discards the counters if the grace period is over. Called after each answer of the store.
    #[inline]
    pub(crate) fn store_answered(&self) {
        let counted_at = self.counted_at.load(Ordering::Relaxed);
        if counted_at != NEVER {
            self.discard(counted_at);
        }
    }

    #[cold]
    fn discard(&self, counted_at: u64) {
        if self.store.now().as_micros() < counted_at.saturating_add(RECOVERY_GRACE_MICROS) {
            return;
        }
        // Only one thread discards, and only if nothing was counted in between.
        if self.counted_at.compare_exchange(counted_at, NEVER, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            self.store.clear();
        }
    }
}
