//! `MemoryStore`, through its public `check`.

use tower_quota_core::{Charge, MemoryStore, Name, Quota, Store};

use super::contender::{ALLOWANCES, Contender, Keyed};

/// So many limits on one key, decided together.
pub(crate) struct TowerQuota<const LIMITS: usize> {
    store: MemoryStore,
    limits: [(Name, Quota); LIMITS],
}

impl<const LIMITS: usize> TowerQuota<LIMITS> {
    /// A store with places for so many keys, and at least ten thousand.
    pub(crate) fn new(keys: u32) -> Self {
        Self {
            store: MemoryStore::with_capacity((keys as usize).max(10_000)),
            limits: std::array::from_fn(|limit| {
                let allowance = &ALLOWANCES[limit];
                (Name::new(allowance.name), Quota::new(1, allowance.unit).burst(u64::from(allowance.burst)))
            }),
        }
    }
}

impl<K: Keyed, const LIMITS: usize> Contender<K> for TowerQuota<LIMITS> {
    fn admits(&self, key: &K) -> bool {
        let key = key.as_key();
        let charges: [Charge<'_>; LIMITS] =
            std::array::from_fn(|limit| Charge::new(self.limits[limit].0, &self.limits[limit].1, &key));
        self.store.check(&charges).into_inner().is_ok_and(|decision| decision.is_allowed())
    }
}
