//! `MemoryStore`, through its public `check`.

use tower_quota_core::{Charge, Decision, Key, MemoryStore, Name, Quota, Store};

use super::allowance::{Allowance, EVERYONE, OLD, Visit};
use super::contender::{Contender, Mix};
use super::keys::Keyed;

/// `LIMITS` limits on one key, decided together.
pub(crate) struct TowerQuota<const LIMITS: usize> {
    store: MemoryStore,
    limits: [(Name, Quota); LIMITS],
}

impl<const LIMITS: usize> TowerQuota<LIMITS> {
    /// Creates a limiter on a clone of this store, which shares its counters.
    pub(crate) fn new(store: MemoryStore, allowances: &[Allowance]) -> Self {
        Self {
            store,
            limits: std::array::from_fn(|limit| limit_of(&allowances[limit])),
        }
    }
}

impl<K: Keyed, const LIMITS: usize> Contender<K> for TowerQuota<LIMITS> {
    fn admits(&self, key: &K) -> bool {
        let key = key.as_key();
        let charges: [Charge<'_>; LIMITS] = std::array::from_fn(|limit| {
            Charge::new(self.limits[limit].0, &self.limits[limit].1, &key)
        });
        self.store
            .check(&charges)
            .into_inner()
            .is_ok_and(|decision| decision.is_allowed())
    }
}

/// A limit on the key and one on all requests together, decided together.
pub(crate) struct WithEveryone {
    store: MemoryStore,
    own: (Name, Quota),
    everyone: (Name, Quota),
}

impl WithEveryone {
    pub(crate) fn new() -> Self {
        let store = MemoryStore::new();
        Self {
            store,
            own: limit_of(&Visit::Used.allowances(1)[0]),
            everyone: limit_of(&EVERYONE),
        }
    }
}

impl<K: Keyed> Contender<K> for WithEveryone {
    fn admits(&self, key: &K) -> bool {
        let key = key.as_key();
        let own = Charge::new(self.own.0, &self.own.1, &key);
        let everyone = Key::EVERYONE;
        let charges = [
            own,
            Charge::new(self.everyone.0, &self.everyone.1, &everyone),
        ];
        // As the layer does.
        let mut decision = Decision::default();
        self.store.check_at_once(&charges, &mut decision);
        decision.is_allowed()
    }
}

fn limit_of(allowance: &Allowance) -> (Name, Quota) {
    let quota =
        Quota::new(u64::from(allowance.units), allowance.period).burst(u64::from(allowance.burst));
    (Name::new(allowance.name), quota)
}

/// Creates a limiter whose last limit counts in fixed windows, as quotas of a day do.
pub(crate) fn with_window<const LIMITS: usize>() -> TowerQuota<LIMITS> {
    let mut limiter = TowerQuota::new(MemoryStore::new(), Visit::Used.allowances(LIMITS));
    if let Some((_, quota)) = limiter.limits.last_mut() {
        *quota = Quota::per_day(quota.capacity()).fixed_window();
    }
    limiter
}

/// Creates a limiter of which nine in ten requests ask three limits, and one in ten a fourth too.
pub(crate) fn mixed() -> Mix<TowerQuota<3>, TowerQuota<4>> {
    let store = MemoryStore::new();
    let three = TowerQuota::new(store.clone(), Visit::Used.allowances(3));
    Mix::new(three, TowerQuota::new(store, Visit::Used.allowances(4)), 10)
}

/// Creates a limiter of which requests ask three limits, at random by their old or new quotas.
pub(crate) fn quotas_in_turn() -> Mix<TowerQuota<3>, TowerQuota<3>> {
    let store = MemoryStore::new();
    Mix::new(
        TowerQuota::new(store.clone(), Visit::Used.allowances(3)),
        TowerQuota::new(store, &OLD),
        2,
    )
}
