//! The counters of this process, used while the store is unavailable.

use core::sync::atomic::{AtomicU64, Ordering};

use tower_quota_core::{Charge, Decision, MemoryStore, Operation, Store};

/// How long no request may have been counted here before the counters are discarded, in microseconds.
///
/// A store that answers now and then, or of which one node is away, would otherwise have the counters discarded while
/// they are needed, and no client would be limited.
const RECOVERY_GRACE_MICROS: u64 = 1_000_000;

/// Stands for no instant.
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
        // After counting: were it before, a recovery in between would leave the count behind.
        self.counted_at.store(decision.at().as_micros().max(1), Ordering::Release);
        decision
    }

    /// Discards the counters if the grace is over. Call it whenever the store has answered: it is next to free.
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
        // Once, and not if something has been counted meanwhile.
        if self.counted_at.compare_exchange(counted_at, NEVER, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            self.store.clear();
        }
    }
}
