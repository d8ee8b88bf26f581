//! Limits without HTTP, for jobs, queues and calls to other services.
//!
//! [`Limiter`] is the public type; its documentation has the examples.

#[cfg(feature = "tokio")]
mod hold;
mod key;
#[cfg(feature = "tokio")]
mod not_ready;
#[cfg(feature = "tokio")]
mod turn;
mod unknown_limit;

use core::fmt;
use core::time::Duration;

use smallvec::SmallVec;

#[cfg(feature = "tokio")]
pub use self::hold::Hold;
pub use self::key::AsKey;
#[cfg(feature = "tokio")]
pub use self::not_ready::NotReady;
#[cfg(feature = "tokio")]
pub use self::turn::Turn;
pub use self::unknown_limit::UnknownLimit;
use crate::answer::Answer;
use crate::charge::{Charge, Operation};
use crate::decision::Decision;
use crate::error::ConfigError;
use crate::key::Key;
use crate::memory::MemoryStore;
use crate::name::Name;
use crate::quota::{Algorithm, Quota};
use crate::store::Store;

/// Limits without HTTP: a store, and one or more named quotas that are counted by one key.
///
/// ```
/// use tower_quota_core::{Limiter, MemoryStore, Quota};
///
/// let limiter = Limiter::new(MemoryStore::new(), "hello", Quota::per_second(10).burst(20));
/// let answer = limiter.check_now("ann");
/// assert!(answer.is_allowed());
/// assert_eq!(answer.remaining(), 19);
/// ```
///
/// Several limits are decided in one atomic step: all are charged, or none is.
///
/// ```
/// use tower_quota_core::{Limiter, MemoryStore, Quota};
///
/// let limiter = Limiter::new(MemoryStore::new(), "second", Quota::per_second(10))
///     .limit("hour", Quota::per_hour(1_000))
///     .scope("reports");
/// # let _ = limiter;
/// ```
///
/// # Methods
///
/// | call | does |
/// |---|---|
/// | [`check`](Self::check), [`check_n`](Self::check_n) | charges one unit, or some, if all fit now |
/// | [`check_now`](Self::check_now), [`check_n_now`](Self::check_n_now) | the same for a [`MemoryStore`], at once |
/// | `until_ready`, `until_ready_within`, `until_n_ready` | wait for the turn (feature `tokio`) |
/// | `turn` | waits for a turn that is refunded unless it is spent (feature `tokio`) |
/// | `hold` | holds units of concurrency limits while work is done (feature `tokio`) |
/// | [`peek`](Self::peek) | reports what a check would get, and charges nothing |
/// | [`refund`](Self::refund) | gives back what a check took |
/// | [`reset`](Self::reset), [`reset_limit`](Self::reset_limit) | forget what a key has used, penalties included |
///
/// Asynchronous calls return the future of the store. That of a [`MemoryStore`] is ready, so a program without a
/// runtime reads it at once:
///
/// ```
/// # use tower_quota_core::{Limiter, MemoryStore, Quota};
/// # let limiter = Limiter::new(MemoryStore::new(), "hello", Quota::per_second(10).burst(20));
/// let Ok(decision) = limiter.check(&7).into_inner();
/// assert_eq!(decision.statuses()[0].remaining(), 19);
/// ```
///
/// The guide for those who come from governor is `tower_quota::guide::from_governor`.
#[derive(Clone)]
pub struct Limiter<S> {
    store: S,
    scope: Name,
    #[cfg(feature = "tokio")]
    longest_wait: Duration,
    first: NamedQuota,
    others: Vec<NamedQuota>,
}

#[derive(Clone)]
struct NamedQuota {
    name: Name,
    quota: Quota,
}

impl NamedQuota {
    /// Returns the charge of a request that waits at most this long.
    fn charge<'a>(&'a self, key: &'a Key<'a>, cost: u64, max_wait: Duration) -> Charge<'a> {
        let charge = Charge::new(self.name, &self.quota, key).cost(cost);
        // A charge without a max wait is a plain one, which stores decide faster. Leaky buckets wait by default.
        match max_wait.is_zero() && self.quota.algorithm() != Algorithm::LeakyBucket {
            true => charge,
            false => charge.max_wait(max_wait),
        }
    }
}

impl<S: Store + Clone> Limiter<S> {
    /// Makes a limiter with one limit.
    ///
    /// # Panics
    /// When the name is invalid; see [`Limiter::try_new`].
    #[must_use]
    #[track_caller]
    pub fn new(store: S, name: impl Into<Name>, quota: Quota) -> Self {
        valid(Self::try_new(store, name, quota))
    }

    /// Does what [`Limiter::new`] does, for a name from a configuration.
    ///
    /// # Errors
    /// [`ConfigError::LimitName`] when the name is empty, longer than 64 bytes or not printable ASCII.
    pub fn try_new(store: S, name: impl Into<Name>, quota: Quota) -> Result<Self, ConfigError> {
        let name = name.into();
        name.check_limit()?;
        #[cfg(feature = "tokio")]
        let quota = quota.for_waits_of(Self::DEFAULT_MAX_WAIT);
        Ok(Self {
            store,
            scope: name,
            #[cfg(feature = "tokio")]
            longest_wait: Self::DEFAULT_MAX_WAIT,
            first: NamedQuota { name, quota },
            others: Vec::new(),
        })
    }

    /// Adds a limit. A request is charged to all limits, or to none.
    ///
    /// # Panics
    /// When the name is invalid; see [`Limiter::try_limit`].
    #[must_use]
    #[track_caller]
    pub fn limit(self, name: impl Into<Name>, quota: Quota) -> Self {
        valid(self.try_limit(name, quota))
    }

    /// Does what [`Limiter::limit`] does, for a name from a configuration.
    ///
    /// # Errors
    /// [`ConfigError`] when the name is empty, longer than 64 bytes or not printable ASCII; when another limit has it;
    /// or when it shares its stored number with another.
    pub fn try_limit(mut self, name: impl Into<Name>, quota: Quota) -> Result<Self, ConfigError> {
        let name = name.into();
        name.check_limit()?;
        let ids = |name: Name| [name.id(), name.strikes_id()];
        for other in self.names() {
            if other == name {
                return Err(ConfigError::DuplicateLimit(name));
            }
            if ids(name).iter().any(|id| ids(other).contains(id)) {
                return Err(ConfigError::CollidingNames(other, name));
            }
        }
        #[cfg(feature = "tokio")]
        let quota = quota.for_waits_of(self.longest_wait);
        self.others.push(NamedQuota { name, quota });
        Ok(self)
    }

    /// Sets the scope of its keys. The default is the name of its first limit.
    ///
    /// Limiters on one store share counters if scope, key and limit's name agree. A [`Key`] keeps the scope it has.
    #[must_use]
    pub fn scope(self, scope: impl Into<Name>) -> Self {
        Self {
            scope: scope.into(),
            ..self
        }
    }

    /// Returns the store.
    #[must_use]
    pub const fn store(&self) -> &S {
        &self.store
    }

    /// Returns the key that this limiter counts a value by, as a value of its own.
    ///
    /// A check of this key counts the same as a check of the value.
    #[must_use]
    pub fn key_of<K: AsKey + ?Sized>(&self, value: &K) -> Key<'static> {
        value.as_key(self.scope).to_static()
    }

    /// Charges one unit to every limit if it fits into all of them now, and nothing otherwise.
    ///
    /// The request may pass if [`Decision::is_allowed`]. A leaky bucket allows one whose turn is now.
    pub fn check<K: AsKey + ?Sized>(&self, key: &K) -> S::Future {
        self.check_n(key, 1)
    }

    /// Charges `cost` units to every limit if they fit into all of them now, and nothing otherwise.
    pub fn check_n<K: AsKey + ?Sized>(&self, key: &K, cost: u64) -> S::Future {
        self.apply(
            Operation::Check,
            &key.as_key(self.scope),
            cost,
            Duration::ZERO,
        )
    }

    /// Reports what [`check`](Self::check) would get now. Charges nothing.
    pub fn peek<K: AsKey + ?Sized>(&self, key: &K) -> S::Future {
        self.apply(Operation::Peek, &key.as_key(self.scope), 1, Duration::ZERO)
    }

    /// Gives back the units that a decision of this limiter took for this key.
    ///
    /// A bucket gets back the units less the refill since the decision, unless the request waited. A leaky bucket gets back
    /// only its [last turn](Charge::turn). A refusal and a clone of a decision give back no units. Do not refund after a
    /// [`reset`](Self::reset), which has given the units back already.
    pub fn refund<K: AsKey + ?Sized>(&self, key: &K, decision: Decision) -> S::Future {
        let waited = decision.wait();
        self.refund_waiting(&key.as_key(self.scope), decision, waited)
    }

    /// Refunds a decision that accepted this wait.
    fn refund_waiting(
        &self,
        key: &Key<'_>,
        mut decision: Decision,
        max_wait: Duration,
    ) -> S::Future {
        let (operation, is_refundable) = match decision.refund() {
            Some(refund) => (refund, true),
            None => (
                Operation::Refund {
                    taken_at: decision.at(),
                },
                false,
            ),
        };
        let mut charges: SmallVec<[Charge<'_>; 4]> = SmallVec::new();
        for limit in self.limits().filter(|_| is_refundable) {
            let status = decision.status(limit.name.as_str());
            if let Some(status) = status.filter(|status| status.taken > 0) {
                let charge = limit.charge(key, status.taken, max_wait);
                charges.push(charge.turn(status.reset_after()));
            }
        }
        self.store.apply(operation, &charges)
    }

    /// Forgets what a key has used under all limits, and the penalties it has.
    pub fn reset<K: AsKey + ?Sized>(&self, key: &K) -> S::Future {
        self.apply(Operation::Reset, &key.as_key(self.scope), 1, Duration::ZERO)
    }

    /// Forgets what a key has used under one limit, and its penalties there.
    ///
    /// # Errors
    /// [`UnknownLimit`] when there is no limit of this name. The store is not asked then.
    pub fn reset_limit<K: AsKey + ?Sized>(
        &self,
        key: &K,
        limit: &str,
    ) -> Result<S::Future, UnknownLimit> {
        let unknown = || UnknownLimit {
            name: limit.into(),
            known: self.names().collect(),
        };
        let limit = self
            .limits()
            .find(|known| known.name.as_str() == limit)
            .ok_or_else(unknown)?;
        let key = key.as_key(self.scope);
        Ok(self.store.apply(
            Operation::Reset,
            &[Charge::new(limit.name, &limit.quota, &key)],
        ))
    }

    fn apply(
        &self,
        operation: Operation,
        key: &Key<'_>,
        cost: u64,
        max_wait: Duration,
    ) -> S::Future {
        self.store
            .apply(operation, &self.charges(key, cost, max_wait))
    }

    /// Returns the charges of a request that waits at most this long.
    fn charges<'a>(
        &'a self,
        key: &'a Key<'a>,
        cost: u64,
        max_wait: Duration,
    ) -> SmallVec<[Charge<'a>; 4]> {
        self.limits()
            .map(|limit| limit.charge(key, cost, max_wait))
            .collect()
    }

    fn limits(&self) -> impl Iterator<Item = &NamedQuota> {
        core::iter::once(&self.first).chain(&self.others)
    }

    fn names(&self) -> impl Iterator<Item = Name> {
        self.limits().map(|limit| limit.name)
    }
}

impl Limiter<MemoryStore> {
    /// Does what [`check`](Self::check) does, without a runtime, and answers with less.
    ///
    /// ```
    /// use tower_quota_core::{Limiter, MemoryStore, Quota};
    ///
    /// let limiter = Limiter::new(MemoryStore::new(), "mails", Quota::per_hour(1));
    /// assert!(limiter.check_now("ann").is_allowed());
    /// let refused = limiter.check_now("ann");
    /// assert!(!refused.is_allowed());
    /// assert!(refused.retry_after().is_some());
    /// ```
    pub fn check_now<K: AsKey + ?Sized>(&self, key: &K) -> Answer {
        self.check_n_now(key, 1)
    }

    /// Does what [`check_n`](Self::check_n) does, without a runtime, and answers with less.
    pub fn check_n_now<K: AsKey + ?Sized>(&self, key: &K, cost: u64) -> Answer {
        let key = key.as_key(self.scope);
        if self.others.is_empty() {
            let charge = self.first.charge(&key, cost, Duration::ZERO);
            return self.store.check_one(&charge);
        }
        let mut decision = Decision::default();
        let charges = self.charges(&key, cost, Duration::ZERO);
        self.store.check_at_once(&charges, &mut decision);
        Answer(*decision.tightest().unwrap_or(&decision.statuses()[0]))
    }
}

impl<S> fmt::Debug for Limiter<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limits = core::iter::once(&self.first)
            .chain(&self.others)
            .map(|limit| (limit.name, limit.quota));
        f.debug_struct("Limiter")
            .field("scope", &self.scope)
            .field("limits", &limits.collect::<Vec<_>>())
            .finish()
    }
}

/// Returns a limiter that was written in code.
#[track_caller]
fn valid<S>(limiter: Result<Limiter<S>, ConfigError>) -> Limiter<S> {
    match limiter {
        Ok(limiter) => limiter,
        #[expect(
            clippy::panic,
            reason = "documented: a limiter written in code fails at start"
        )]
        Err(error) => panic!("{error}"),
    }
}
