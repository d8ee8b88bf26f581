//! The limiters in memory, and the quotas and keys that they count by.

use std::collections::HashMap;
use std::error::Error;
use std::fmt::Write;
use std::hash::Hash;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use governor::clock::DefaultClock;
use governor::state::keyed::DefaultKeyedStateStore;
use governor::state::{InMemoryState, NotKeyed};
use limitador::limit::{Context, Limit, Namespace};
use quota::{QuotaPolicy, QuotaPool, RefillRate};
use tower_quota_core::{AsKey, Charge, Decision, Key, Limiter, MemoryStore, Name, Quota, Store};

use crate::traffic::Draws;

pub(crate) const TOWER_QUOTA: &str = "tower-quota";
pub(crate) const GOVERNOR: &str = "governor";
pub(crate) const QUOTA: &str = "quota";
pub(crate) const LIMITADOR: &str = "limitador";

/// The quota of one limit: a unit comes back in each `unit` of time, up to `burst`.
#[derive(Clone, Copy)]
pub(crate) struct Allowance {
    name: &'static str,
    unit: Duration,
    burst: u32,
}

impl Allowance {
    const fn new(name: &'static str, unit: Duration, burst: u32) -> Self {
        Self { name, unit, burst }
    }

    fn quota(&self) -> Quota {
        // A period has a millisecond at least.
        let times = SECOND.as_micros() / self.unit.min(SECOND).as_micros();
        Quota::new(times as u64, self.unit * times as u32).burst(self.burst.into())
    }
}

/// The buckets that requests find.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Visit {
    /// Partly used. No request is refused, and no bucket is full again within a run: the bursts are in the millions.
    Used,
    /// Full again: a unit comes back before the next request of the client.
    Refilled,
    /// Exhausted by the first request of the client.
    Refused,
}

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3_600);

const USED: [Allowance; 4] = [
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

const REFILLED: [Allowance; 3] = [
    Allowance::new("first", Duration::from_micros(1), 1_000),
    Allowance::new("second", Duration::from_micros(1), 2_000),
    Allowance::new("third", Duration::from_micros(1), 3_000),
];

/// The widest limit comes first, as in a policy that is written from large to small.
const REFUSED: [Allowance; 3] = [
    Allowance::new("first", HOUR.saturating_mul(24), 1),
    Allowance::new("second", HOUR.saturating_mul(12), 2),
    Allowance::new("third", HOUR.saturating_mul(6), 3),
];

/// The quota of all requests together, which admits all of them.
const EVERYONE: Allowance = Allowance::new("everyone", Duration::from_micros(1), 100_000_000);

impl Visit {
    /// Returns the quotas of this many limits, at most three, or four for `Used`.
    pub(crate) fn allowances(self, limits: usize) -> &'static [Allowance] {
        match self {
            Self::Used => &USED[..limits],
            Self::Refilled => &REFILLED[..limits],
            Self::Refused => &REFUSED[..limits],
        }
    }
}

/// A type of keys.
pub(crate) trait Keyed: AsKey + Clone + Default + Eq + Hash + Send + Sync + 'static {
    /// Changes into the key of this number.
    fn become_number(&mut self, number: u32);

    /// Returns the same key as text, for limitador.
    fn text(&self) -> String;
}

const USER: Name = Name::new("user");

impl Keyed for u64 {
    fn become_number(&mut self, number: u32) {
        *self = u64::from(number);
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

/// Sixteen bytes of random text, as an API key.
impl Keyed for String {
    fn become_number(&mut self, number: u32) {
        self.clear();
        // Writing to a string cannot fail.
        _ = write!(self, "{:016x}", Draws::new(u64::from(number)).next());
    }

    fn text(&self) -> String {
        self.clone()
    }
}

/// A limiter that counts by keys of this type.
pub(crate) trait Contender<K>: Send + Sync {
    /// Checks one unit. Returns whether it was admitted.
    fn admits(&self, key: &K) -> bool;

    /// Checks once for each key. Returns the number of admitted requests.
    fn admitted(&self, keys: &[K]) -> usize {
        keys.iter()
            .filter(|key| self.admits(std::hint::black_box(key)))
            .count()
    }
}

pub(crate) type Made<K> = Box<dyn Contender<K>>;

/// One limit of tower-quota on its own: `Limiter::check_now`.
struct Direct(Limiter<MemoryStore>);

impl<K: Keyed> Contender<K> for Direct {
    fn admits(&self, key: &K) -> bool {
        self.0.check_now(key).is_allowed()
    }
}

/// Several limits of tower-quota, decided together as the layer does.
struct Several<const LIMITS: usize> {
    store: MemoryStore,
    limits: [(Name, Quota); LIMITS],
    /// The last limit is a limit of everyone.
    with_everyone: bool,
}

impl<const LIMITS: usize> Several<LIMITS> {
    fn new(store: MemoryStore, allowances: &[Allowance]) -> Self {
        let limit = |at: usize| (Name::new(allowances[at].name), allowances[at].quota());
        Self {
            store,
            limits: std::array::from_fn(limit),
            with_everyone: false,
        }
    }
}

impl<K: Keyed, const LIMITS: usize> Contender<K> for Several<LIMITS> {
    fn admits(&self, key: &K) -> bool {
        let (key, everyone) = (key.as_key(USER), Key::EVERYONE);
        let charges: [Charge<'_>; LIMITS] = std::array::from_fn(|at| {
            let is_last = at + 1 == LIMITS;
            let key = if self.with_everyone && is_last {
                &everyone
            } else {
                &key
            };
            Charge::new(self.limits[at].0, &self.limits[at].1, key)
        });
        let mut decision = Decision::default();
        self.store.check_at_once(&charges, &mut decision);
        decision.is_allowed()
    }
}

/// Creates tower-quota with a limit and a store of this capacity.
pub(crate) fn limiter<K: Keyed>(allowance: &Allowance, capacity: usize) -> Made<K> {
    let store = MemoryStore::with_capacity(capacity);
    Box::new(Direct(Limiter::new(
        store,
        allowance.name,
        allowance.quota(),
    )))
}

/// Creates tower-quota with three limits.
pub(crate) fn three<K: Keyed>(visit: Visit, capacity: usize) -> Made<K> {
    let store = MemoryStore::with_capacity(capacity);
    Box::new(Several::<3>::new(store, visit.allowances(3)))
}

/// Creates tower-quota with a limit of each client and a limit of everyone.
pub(crate) fn with_everyone<K: Keyed>() -> Made<K> {
    let allowances = [USED[0], EVERYONE];
    let limits = Several::<2>::new(MemoryStore::new(), &allowances);
    Box::new(Several {
        with_everyone: true,
        ..limits
    })
}

/// Creates tower-quota with three limits, the last of which counts in fixed windows of a day.
pub(crate) fn with_window() -> Made<u64> {
    let mut limits = Several::<3>::new(MemoryStore::new(), &USED);
    limits.limits[2].1 = Quota::per_day(8_000_000).fixed_window();
    Box::new(limits)
}

/// Two ways to ask the same counters: one request in `every`, drawn at random, takes the second way.
struct Mix<B> {
    first: Several<3>,
    second: B,
    takes_second: Vec<bool>,
    next: AtomicUsize,
}

impl<B> Mix<B> {
    fn new(second: impl FnOnce(MemoryStore) -> B, every: u64) -> Self {
        let store = MemoryStore::new();
        let mut draws = Draws::new(1);
        Self {
            first: Several::new(store.clone(), &USED),
            second: second(store),
            // More draws than a branch predictor learns.
            takes_second: (0..1 << 16)
                .map(|_| draws.next().is_multiple_of(every))
                .collect(),
            next: AtomicUsize::new(0),
        }
    }
}

impl<B: Contender<u64>> Contender<u64> for Mix<B> {
    fn admits(&self, key: &u64) -> bool {
        let next = self.next.fetch_add(1, Ordering::Relaxed) % self.takes_second.len();
        if self.takes_second[next] {
            self.second.admits(key)
        } else {
            self.first.admits(key)
        }
    }
}

/// Creates tower-quota with three limits, and a fourth for one request in ten.
pub(crate) fn mixed() -> Made<u64> {
    Box::new(Mix::new(|store| Several::<4>::new(store, &USED), 10))
}

/// Creates tower-quota with three limits, at random by their old or new quotas.
pub(crate) fn quotas_in_turn() -> Made<u64> {
    Box::new(Mix::new(|store| Several::<3>::new(store, &OLD), 2))
}

/// One limiter per limit, asked one after the other until one refuses: the usual way with a limiter of one limit.
struct Each<C>(Vec<C>);

impl<K, C: Contender<K>> Contender<K> for Each<C> {
    fn admits(&self, key: &K) -> bool {
        self.0.iter().all(|limiter| limiter.admits(key))
    }
}

/// governor's keyed limiter on a DashMap and quanta's clock, which are its defaults.
struct Governor<K: Keyed>(governor::RateLimiter<K, DefaultKeyedStateStore<K>, DefaultClock>);

impl<K: Keyed> Contender<K> for Governor<K> {
    fn admits(&self, key: &K) -> bool {
        self.0.check_key(key).is_ok()
    }
}

fn governors<K: Keyed>(allowances: &[Allowance]) -> Each<Governor<K>> {
    let governor = |allowance| Governor(governor::RateLimiter::keyed(governor_quota(allowance)));
    Each(allowances.iter().map(governor).collect())
}

pub(crate) fn governor<K: Keyed>(allowances: &[Allowance]) -> Made<K> {
    Box::new(governors(allowances))
}

fn governor_quota(allowance: &Allowance) -> governor::Quota {
    let burst = NonZeroU32::new(allowance.burst).unwrap_or(NonZeroU32::MIN);
    // The interval is not zero, so there is a quota.
    governor::Quota::with_period(allowance.unit)
        .unwrap_or(governor::Quota::per_second(burst))
        .allow_burst(burst)
}

/// A limiter of each key, and one of all requests together.
struct GovernorWithEveryone<K: Keyed> {
    keyed: Each<Governor<K>>,
    everyone: governor::RateLimiter<NotKeyed, InMemoryState, DefaultClock>,
}

impl<K: Keyed> Contender<K> for GovernorWithEveryone<K> {
    fn admits(&self, key: &K) -> bool {
        self.keyed.admits(key) && self.everyone.check().is_ok()
    }
}

pub(crate) fn governor_with_everyone<K: Keyed>() -> Made<K> {
    Box::new(GovernorWithEveryone {
        keyed: governors(&USED[..1]),
        everyone: governor::RateLimiter::direct(governor_quota(&EVERYONE)),
    })
}

/// The crate `quota`: sharded tables of one atomic number per key, and a cache of the latest keys.
struct Pool<K: Keyed>(QuotaPool<K>);

impl<K: Keyed> Contender<K> for Pool<K> {
    fn admits(&self, key: &K) -> bool {
        self.0.check(key, 1)
    }
}

pub(crate) fn pool<K: Keyed>(allowances: &[Allowance]) -> Made<K> {
    let pool = |allowance: &Allowance| {
        let rate = RefillRate::per_sec(1.0 / allowance.unit.as_secs_f64());
        let policy = QuotaPolicy::new()
            .set_capacity(f64::from(allowance.burst))
            .set_refill_rate(rate);
        Pool(QuotaPool::with_key_type(policy, allowance.burst.into()))
    };
    Box::new(Each(allowances.iter().map(pool).collect()))
}

/// limitador with its storage in memory: fixed windows of several limits, chosen by a context of named texts.
struct Limitador {
    limiter: limitador::RateLimiter,
    namespace: Namespace,
}

impl<K: Keyed> Contender<K> for Limitador {
    fn admits(&self, key: &K) -> bool {
        let context = Context::from(HashMap::from([("user".to_owned(), key.text())]));
        self.limiter
            .check_rate_limited_and_update(&self.namespace, &context, 1)
            .is_ok_and(|checked| !checked.limited)
    }
}

/// Creates limits on one variable, counted together, with a cache for twice this number of keys.
pub(crate) fn limitador<K: Keyed>(
    allowances: &[Allowance],
    keys: u32,
) -> Result<Made<K>, Box<dyn Error>> {
    let cache = u64::from(keys.max(1_000)) * allowances.len() as u64 * 2;
    let limiter = limitador::RateLimiter::new(cache);
    for allowance in allowances {
        limiter.add_limit(Limit::new(
            "bench",
            allowance.burst.into(),
            allowance.unit.as_secs(),
            vec![],
            vec!["user".try_into()?],
        ));
    }
    Ok(Box::new(Limitador {
        limiter,
        namespace: "bench".into(),
    }))
}
