use core::sync::atomic::{AtomicU64, Ordering};

use std::sync::{Arc, Mutex, PoisonError};

use tower_quota_core::{
    Charge, Decision, HoldKeeper, LimitStatus, MemoryStore, Operation, Store, Timestamp,
};

/// The time without local decisions before a reset of the counters, in microseconds.
///
/// The time is long, so that a store that answers now and then does not release limited clients.
const RECOVERY_GRACE_MICROS: u64 = 3_600_000_000;

const NEVER: u64 = 0;

/// Local counters, which start from the store's last refusal.
pub(crate) struct LocalCounters {
    store: MemoryStore,
    pub(crate) keeper: HoldKeeper<MemoryStore>,
    counted_at: AtomicU64,
    catching_up: Mutex<()>,
}

impl Default for LocalCounters {
    fn default() -> Self {
        Self::new(MemoryStore::default())
    }
}

impl LocalCounters {
    pub(crate) fn new(store: MemoryStore) -> Self {
        Self {
            keeper: HoldKeeper::new(store.clone(), Arc::new(())),
            store,
            counted_at: AtomicU64::new(NEVER),
            catching_up: Mutex::new(()),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.store.now()
    }

    /// Checks charges by shares. `known_status` is the status of a share after the store's last refusal.
    pub(crate) fn check(
        &self,
        charges: &[Charge<'_>],
        known_status: impl Fn(&Charge<'_>) -> Option<LimitStatus>,
    ) -> Decision {
        for charge in charges {
            if let Some(last) = known_status(charge) {
                self.catch_up(charge, &last);
            }
        }
        self.apply(Operation::Check, charges)
    }

    /// Charges a local counter down to the remaining units of the store's last refusal.
    fn catch_up(&self, charge: &Charge<'_>, last: &LimitStatus) {
        let charge = Charge::new(charge.name(), charge.quota(), charge.key());
        // Two requests of a client must not both charge the difference.
        let _alone = self
            .catching_up
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let local = self.apply(Operation::Check, &[charge.cost(0)]);
        let left = local.statuses().first().map_or(0, LimitStatus::remaining);
        if left > last.remaining() {
            self.apply(Operation::Charge, &[charge.cost(left - last.remaining())]);
        }
    }

    pub(crate) fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Decision {
        let Ok(decision) = self.store.apply(operation, charges).into_inner();
        // Set the time after the count, because a recovery in between would keep the count.
        self.counted_at
            .store(decision.at().as_micros().max(1), Ordering::Release);
        decision
    }

    /// Discards the counters after the grace period. Answers of caches and leases do not count.
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
        // The exchange fails if another thread has counted or discarded meanwhile.
        if self
            .counted_at
            .compare_exchange(counted_at, NEVER, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
        {
            self.store.clear();
        }
    }
}
