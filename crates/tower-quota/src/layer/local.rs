//! The counters that stand in for a sick store.

use core::sync::atomic::{AtomicU64, Ordering};

use tower_quota_core::{Charge, Decision, MemoryStore, Operation, Store};

/// How long nothing may have had to be counted here before the store is taken for well again, in microseconds. A store
/// that answers now and then, or of which one node is down, would otherwise have the counters dropped while they are
/// needed, and nobody would be limited.
const CONVALESCENCE: u64 = 1_000_000;

/// Stands for no instant.
const NEVER: u64 = 0;

/// A store in this process that remembers no longer than the real one is away.
#[derive(Debug, Default)]
pub(super) struct Local {
    store: MemoryStore,
    /// The last instant at which something was counted that has not been dropped, in microseconds, or `NEVER`.
    counted_at: AtomicU64,
}

impl Local {
    pub(super) const fn new(store: MemoryStore) -> Self {
        Self { store, counted_at: AtomicU64::new(NEVER) }
    }

    /// Decides by what has been counted since the store failed.
    pub(super) fn check(&self, charges: &[Charge<'_>]) -> Decision {
        self.apply(Operation::Check, charges)
    }

    /// Does an operation on what has been counted since the store failed.
    pub(super) fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Decision {
        let Ok(decision) = self.store.apply(operation, charges).into_inner();
        // After counting: were it before, a recovery in between would leave the count behind.
        self.counted_at.store(decision.at().as_micros().max(1), Ordering::Release);
        decision
    }

    /// The store has answered: drops what was counted without it, if that is long enough ago. Next to free when there
    /// is nothing.
    pub(super) fn answered(&self) {
        let counted_at = self.counted_at.load(Ordering::Relaxed);
        if counted_at == NEVER || self.store.now().as_micros() < counted_at.saturating_add(CONVALESCENCE) {
            return;
        }
        // Once, and not if something has been counted meanwhile.
        if self.counted_at.compare_exchange(counted_at, NEVER, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            self.store.clear();
        }
    }
}
