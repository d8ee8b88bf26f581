//! The limiters in memory, and the quotas and keys that they count by.

use std::collections::HashMap;
use std::fmt::Write;
use std::hash::Hash;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use governor::state::keyed::DefaultKeyedStateStore;
use limitador::limit::{Context, Limit, Namespace};
use quota::{QuotaPolicy, QuotaPool, RefillRate};
use tower_quota_core::{AsKey, Charge, Decision, Key, Limiter, MemoryStore, Name, Quota, Store};

use crate::Outcome;
use crate::traffic::Draws;

/// Checks one unit of a key. Returns whether it was admitted.
pub(crate) type Check<K> = Box<dyn Fn(&K) -> bool + Send + Sync>;

/// The quota of one limit: a unit comes back in each `unit` of time, up to `burst`.
#[derive(Clone, Copy)]
pub(crate) struct Allowance {
    name: &'static str,
    unit: Duration,
    burst: u32,
}

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3_600);

impl Allowance {
    const fn new(name: &'static str, unit: Duration, burst: u32) -> Self {
        Self { name, unit, burst }
    }

    fn quota(&self) -> Quota {
        // A period has a millisecond at least.
        let times = SECOND.as_micros() / self.unit.min(SECOND).as_micros();
        Quota::new(times as u64, self.unit * times as u32).burst(self.burst.into())
    }

    fn limit(&self) -> (Name, Quota) {
        (Name::new(self.name), self.quota())
    }
}

/// Requests find these buckets partly used. None is full again or empty within a run.
pub(crate) const USED: [Allowance; 4] = [
    Allowance::new("first", SECOND.saturating_mul(120), 9_000_000),
    Allowance::new("second", SECOND.saturating_mul(130), 8_500_000),
    Allowance::new("third", SECOND.saturating_mul(140), 8_000_000),
    Allowance::new("fourth", SECOND.saturating_mul(150), 7_500_000),
];

/// The quotas of an earlier version of the policy, which take turns with `USED`.
const OLD: [Allowance; 3] = [
    Allowance::new("first", SECOND.saturating_mul(110), 8_900_000),
    Allowance::new("second", SECOND.saturating_mul(120), 8_400_000),
    Allowance::new("third", SECOND.saturating_mul(130), 7_900_000),
];

/// A unit comes back before the next request of the client, so these buckets are full again.
pub(crate) const REFILLED: [Allowance; 3] = [
    Allowance::new("first", Duration::from_micros(1), 1_000),
    Allowance::new("second", Duration::from_micros(1), 2_000),
    Allowance::new("third", Duration::from_micros(1), 3_000),
];

/// The first request of a client exhausts the first bucket, which is the widest.
pub(crate) const REFUSED: [Allowance; 3] = [
    Allowance::new("first", HOUR.saturating_mul(24), 1),
    Allowance::new("second", HOUR.saturating_mul(12), 2),
    Allowance::new("third", HOUR.saturating_mul(6), 3),
];

/// The quota of all requests together, which admits all of them.
const EVERYONE: Allowance = Allowance::new("everyone", Duration::from_micros(1), 100_000_000);

/// A type of keys.
pub(crate) trait Keyed: AsKey + Clone + Default + Eq + Hash + Send + Sync + 'static {
    /// Changes into the key of this number.
    fn become_number(&mut self, number: u64);

    /// Returns the same key as text, for limitador.
    fn text(&self) -> String;
}

impl Keyed for u64 {
    fn become_number(&mut self, number: u64) {
        *self = number;
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

/// Sixteen bytes of random text, as an API key.
impl Keyed for String {
    fn become_number(&mut self, number: u64) {
        self.clear();
        // Writing to a string cannot fail.
        _ = write!(self, "{:016x}", Draws::new(number).next());
    }

    fn text(&self) -> String {
        self.clone()
    }
}

/// Creates tower-quota with these limits: `Limiter` for one, and the call of the layer for more, which decides all or none.
pub(crate) fn tower_quota<K: Keyed>(allowances: &[Allowance], capacity: usize) -> Check<K> {
    let store = MemoryStore::with_capacity(capacity);
    match allowances {
        [only] => {
            let limiter = Limiter::new(store, only.name, only.quota());
            Box::new(move |key| limiter.check_now(key).is_allowed())
        }
        [first, second, third] => {
            let limits = [first, second, third].map(Allowance::limit);
            Box::new(move |key| together(&store, &limits, key, None))
        }
        _ => Box::new(|_| false),
    }
}

/// Creates tower-quota with a limit of each client and a limit of everyone.
pub(crate) fn tower_quota_with_everyone() -> Check<u64> {
    let store = MemoryStore::new();
    let limits = [USED[0], EVERYONE].map(|allowance| allowance.limit());
    Box::new(move |key| together(&store, &limits, key, Some(&Key::EVERYONE)))
}

/// Creates tower-quota with three limits, the last of which counts in fixed windows of a day.
pub(crate) fn with_window() -> Check<u64> {
    let store = MemoryStore::new();
    let mut limits = [USED[0], USED[1], USED[2]].map(|allowance| allowance.limit());
    limits[2].1 = Quota::per_day(8_000_000).fixed_window();
    Box::new(move |key| together(&store, &limits, key, None))
}

/// Checks several limits of tower-quota together. The last one counts by its own key, if it has one.
fn together<K: Keyed, const LIMITS: usize>(
    store: &MemoryStore,
    limits: &[(Name, Quota); LIMITS],
    key: &K,
    of_last: Option<&Key<'_>>,
) -> bool {
    let key = key.as_key(Name::new("user"));
    let charges: [Charge<'_>; LIMITS] = std::array::from_fn(|at| {
        let own = of_last.filter(|_| at + 1 == LIMITS);
        Charge::new(limits[at].0, &limits[at].1, own.unwrap_or(&key))
    });
    let mut decision = Decision::default();
    store.check_at_once(&charges, &mut decision);
    decision.is_allowed()
}

/// Creates tower-quota with three limits, and a fourth for one request in ten.
pub(crate) fn mixed() -> Check<u64> {
    let (some, all) = ([USED[0], USED[1], USED[2]], USED);
    at_random(some.map(|one| one.limit()), all.map(|one| one.limit()), 10)
}

/// Creates tower-quota with three limits, at random by their old or new quotas.
pub(crate) fn quotas_in_turn() -> Check<u64> {
    let new = [USED[0], USED[1], USED[2]];
    at_random(new.map(|one| one.limit()), OLD.map(|one| one.limit()), 2)
}

/// Counts by `usual` limits, and one request in `every`, drawn at random, by `other` ones.
fn at_random<const N: usize, const M: usize>(
    usual: [(Name, Quota); N],
    other: [(Name, Quota); M],
    every: u64,
) -> Check<u64> {
    let (store, mut draws, next) = (MemoryStore::new(), Draws::new(1), AtomicUsize::new(0));
    // More draws than a branch predictor learns.
    let takes_other: Vec<bool> = (0..1 << 16)
        .map(|_| draws.next().is_multiple_of(every))
        .collect();
    Box::new(move |key| {
        let next = next.fetch_add(1, Ordering::Relaxed) % takes_other.len();
        if takes_other[next] {
            together(&store, &other, key, None)
        } else {
            together(&store, &usual, key, None)
        }
    })
}

/// Creates governor's keyed limiters on a DashMap and quanta's clock, which are its defaults. They are asked one after the
/// other until one refuses.
pub(crate) fn governor<K: Keyed>(allowances: &[Allowance]) -> Check<K> {
    let limiters: Vec<governor::RateLimiter<K, DefaultKeyedStateStore<K>, _>> = allowances
        .iter()
        .map(|allowance| governor::RateLimiter::keyed(governor_quota(allowance)))
        .collect();
    Box::new(move |key| {
        limiters
            .iter()
            .all(|limiter| limiter.check_key(key).is_ok())
    })
}

/// Creates a limiter of each key, and one of all requests together.
pub(crate) fn governor_with_everyone() -> Check<u64> {
    let keyed = governor(&USED[..1]);
    let everyone = governor::RateLimiter::direct(governor_quota(&EVERYONE));
    Box::new(move |key| keyed(key) && everyone.check().is_ok())
}

fn governor_quota(allowance: &Allowance) -> governor::Quota {
    let burst = NonZeroU32::new(allowance.burst).unwrap_or(NonZeroU32::MIN);
    // The interval is not zero, so there is a quota.
    governor::Quota::with_period(allowance.unit)
        .unwrap_or(governor::Quota::per_second(burst))
        .allow_burst(burst)
}

/// Creates pools of the crate `quota`: sharded tables of one atomic number per key, and a cache of the latest keys.
pub(crate) fn quota<K: Keyed>(allowances: &[Allowance]) -> Check<K> {
    let pool = |allowance: &Allowance| {
        let rate = RefillRate::per_sec(1.0 / allowance.unit.as_secs_f64());
        let policy = QuotaPolicy::new()
            .set_capacity(f64::from(allowance.burst))
            .set_refill_rate(rate);
        QuotaPool::with_key_type(policy, allowance.burst.into())
    };
    let pools: Vec<QuotaPool<K>> = allowances.iter().map(pool).collect();
    Box::new(move |key| pools.iter().all(|pool| pool.check(key, 1)))
}

/// Creates limitador with its storage in memory: fixed windows of several limits, counted together and chosen by a context
/// of named texts. Its cache has room for twice this number of keys.
pub(crate) fn limitador<K: Keyed>(allowances: &[Allowance], keys: u64) -> Outcome<Check<K>> {
    let cache = keys.max(1_000) * allowances.len() as u64 * 2;
    let limiter = limitador::RateLimiter::new(cache);
    let namespace = Namespace::from("bench");
    for allowance in allowances {
        limiter.add_limit(Limit::new(
            "bench",
            allowance.burst.into(),
            allowance.unit.as_secs(),
            vec![],
            vec!["user".try_into()?],
        ));
    }
    Ok(Box::new(move |key| {
        let context = Context::from(HashMap::from([("user".to_owned(), key.text())]));
        limiter
            .check_rate_limited_and_update(&namespace, &context, 1)
            .is_ok_and(|checked| !checked.limited)
    }))
}
