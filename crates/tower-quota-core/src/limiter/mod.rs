//! Rate limits without HTTP, for jobs, queues and calls to your own or other services.

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
#[cfg(feature = "tokio")]
use std::sync::Arc;

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
#[cfg(feature = "tokio")]
use crate::keeper::HoldKeeper;
use crate::key::Key;
use crate::memory::MemoryStore;
use crate::name::Name;
use crate::quota::{Algorithm, Quota};
use crate::store::Store;

/// Rate limits without HTTP, for a store and one or more named quotas.
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
/// The store charges all limits of a call, or none.
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
/// | [`check`](Self::check), [`check_n`](Self::check_n) | charges units if they fit now |
/// | [`check_now`](Self::check_now), [`check_n_now`](Self::check_n_now) | the same without `await`, for a [`MemoryStore`] |
/// | `until_ready`, `until_n_ready` | wait for a turn (feature `tokio`) |
/// | `turn` | waits for a turn that you can give back (feature `tokio`) |
/// | `hold` | holds units of concurrency limits during your work (feature `tokio`) |
/// | [`peek`](Self::peek) | reports the decision of a check without a charge |
/// | [`refund`](Self::refund) | gives back the units of a check |
/// | [`reset`](Self::reset), [`reset_limit`](Self::reset_limit) | forget the used units and the penalties of a key |
///
/// Asynchronous calls return the future of the store. The future of a [`MemoryStore`] is ready, so your program needs no
/// runtime:
///
/// ```
/// # use tower_quota_core::{Limiter, MemoryStore, Quota};
/// # let limiter = Limiter::new(MemoryStore::new(), "hello", Quota::per_second(10).burst(20));
/// let Ok(decision) = limiter.check(&7).into_inner();
/// assert_eq!(decision.statuses()[0].remaining(), 19);
/// ```
///
/// If you know governor, read `tower_quota::guide::from_governor`.
#[derive(Clone)]
pub struct Limiter<S> {
    store: S,
    scope: Name,
    #[cfg(feature = "tokio")]
    longest_wait: Duration,
    #[cfg(feature = "tokio")]
    keeper: HoldKeeper<S>,
    limits: Vec<NamedQuota>,
}

#[derive(Clone, Debug)]
struct NamedQuota {
    name: Name,
    quota: Quota,
}

impl NamedQuota {
    fn charge<'a>(&'a self, key: &'a Key<'a>, cost: u64, max_wait: Duration) -> Charge<'a> {
        let charge = Charge::new(self.name, &self.quota, key).cost(cost);
        // Stores decide charges without a longest wait faster, but a leaky bucket waits by default.
        match max_wait.is_zero() && self.quota.algorithm() != Algorithm::LeakyBucket {
            true => charge,
            false => charge.max_wait(max_wait),
        }
    }
}

impl<S: Store + Clone> Limiter<S> {
    /// Creates a limiter with one limit.
    ///
    /// # Panics
    /// Panics on an invalid name. Use [`Limiter::try_new`] for a name from your configuration.
    #[must_use]
    #[track_caller]
    pub fn new(store: S, name: impl Into<Name>, quota: Quota) -> Self {
        valid(Self::try_new(store, name, quota))
    }

    /// Creates a limiter with one limit.
    ///
    /// # Errors
    /// Returns [`ConfigError::LimitName`] if the name is empty, longer than 64 bytes or not printable ASCII.
    pub fn try_new(store: S, name: impl Into<Name>, quota: Quota) -> Result<Self, ConfigError> {
        let name = name.into();
        let limiter = Self {
            #[cfg(feature = "tokio")]
            keeper: HoldKeeper::new(store.clone(), Arc::new(())),
            store,
            scope: name,
            #[cfg(feature = "tokio")]
            longest_wait: Self::DEFAULT_MAX_WAIT,
            limits: Vec::with_capacity(1),
        };
        limiter.try_limit(name, quota)
    }

    /// Adds a limit.
    ///
    /// # Panics
    /// Panics on an invalid name. Use [`Limiter::try_limit`] for a name from your configuration.
    #[must_use]
    #[track_caller]
    pub fn limit(self, name: impl Into<Name>, quota: Quota) -> Self {
        valid(self.try_limit(name, quota))
    }

    /// Adds a limit.
    ///
    /// # Errors
    /// Returns [`ConfigError`] if the name is empty, longer than 64 bytes, not printable ASCII or
    /// already in use, if the stored ids of two names are equal, or if the limiter has
    /// [`Charge::MOST`] limits.
    pub fn try_limit(mut self, name: impl Into<Name>, quota: Quota) -> Result<Self, ConfigError> {
        let name = name.into();
        name.check_limit()?;
        for limit in &self.limits {
            if limit.name == name {
                return Err(ConfigError::DuplicateLimit(name));
            }
            let ids = limit.name.counter_ids();
            if name.counter_ids().iter().any(|id| ids.contains(id)) {
                return Err(ConfigError::CollidingNames(limit.name, name));
            }
        }
        if self.limits.len() == Charge::MOST {
            return Err(ConfigError::TooManyLimits(name));
        }
        #[cfg(feature = "tokio")]
        let quota = quota.for_waits_of(self.longest_wait);
        self.limits.push(NamedQuota { name, quota });
        Ok(self)
    }

    /// Sets the scope of the keys. Defaults to the name of the first limit.
    ///
    /// Limiters on one store share a counter if the scope, the key and the name of the limit agree. A [`Key`] keeps its own
    /// scope.
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

    /// Returns the key of a value. A check of the key counts like a check of the value.
    pub fn key_of<K: AsKey + ?Sized>(&self, value: &K) -> Key<'static> {
        value.as_key(self.scope).to_static()
    }

    /// Charges one unit to every limit if a unit fits into all limits now.
    ///
    /// Your request may pass if [`Decision::is_allowed`]. A leaky bucket allows a request whose turn is now.
    pub fn check<K: AsKey + ?Sized>(&self, key: &K) -> S::Future {
        self.check_n(key, 1)
    }

    /// Charges `cost` units to every limit if the units fit into all limits now.
    pub fn check_n<K: AsKey + ?Sized>(&self, key: &K, cost: u64) -> S::Future {
        self.apply(
            Operation::Check,
            &key.as_key(self.scope),
            cost,
            Duration::ZERO,
        )
    }

    /// Reports the decision of a [`check`](Self::check) without a charge.
    pub fn peek<K: AsKey + ?Sized>(&self, key: &K) -> S::Future {
        self.apply(Operation::Peek, &key.as_key(self.scope), 1, Duration::ZERO)
    }

    /// Gives back the units that a decision of this limiter has charged to this key.
    ///
    /// A bucket gets the units back, less the refill since the decision, unless your request waited. A leaky bucket gets
    /// back only the [last turn](Charge::turn). You cannot refund a refusal or a clone of a decision. Do not refund after a
    /// [`reset`](Self::reset), which has already given the units back.
    pub fn refund<K: AsKey + ?Sized>(&self, key: &K, mut decision: Decision) -> S::Future {
        let key = key.as_key(self.scope);
        let waited = decision.wait();
        let charges = self.refunds(&key, &mut decision, waited);
        self.store.apply(
            Operation::Refund {
                taken_at: decision.at(),
            },
            &charges,
        )
    }

    /// Returns the charges that give back the units of a decision, once.
    fn refunds<'a>(
        &'a self,
        key: &'a Key<'a>,
        decision: &mut Decision,
        max_wait: Duration,
    ) -> SmallVec<[Charge<'a>; 4]> {
        let mut charges = SmallVec::new();
        if decision.refund().is_some() {
            for limit in &self.limits {
                let status = decision.status(limit.name.as_str());
                if let Some(status) = status.filter(|status| status.taken > 0) {
                    let charge = limit.charge(key, status.taken, max_wait);
                    charges.push(charge.turn(status.reset_after()));
                }
            }
        }
        charges
    }

    /// Forgets the used units and the penalties of a key.
    pub fn reset<K: AsKey + ?Sized>(&self, key: &K) -> S::Future {
        self.apply(Operation::Reset, &key.as_key(self.scope), 1, Duration::ZERO)
    }

    /// Forgets the used units and the penalties of a key under one limit.
    ///
    /// # Errors
    /// Returns [`UnknownLimit`] if the limiter has no limit with this name.
    pub fn reset_limit<K: AsKey + ?Sized>(
        &self,
        key: &K,
        limit: &str,
    ) -> Result<S::Future, UnknownLimit> {
        let mut limits = self.limits.iter();
        let Some(limit) = limits.find(|known| known.name.as_str() == limit) else {
            return Err(UnknownLimit {
                name: limit.into(),
                known: self.limits.iter().map(|known| known.name).collect(),
            });
        };
        let key = key.as_key(self.scope);
        let charge = Charge::new(limit.name, &limit.quota, &key);
        Ok(self.store.apply(Operation::Reset, &[charge]))
    }

    fn apply(
        &self,
        operation: Operation,
        key: &Key<'_>,
        cost: u64,
        max_wait: Duration,
    ) -> S::Future {
        let charges = self.charges(key, cost, max_wait);
        self.store.apply(operation, &charges)
    }

    fn charges<'a>(
        &'a self,
        key: &'a Key<'a>,
        cost: u64,
        max_wait: Duration,
    ) -> SmallVec<[Charge<'a>; 4]> {
        let charge = |limit: &'a NamedQuota| limit.charge(key, cost, max_wait);
        self.limits.iter().map(charge).collect()
    }
}

impl Limiter<MemoryStore> {
    /// Charges like [`check`](Self::check), without `await`.
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

    /// Charges like [`check_n`](Self::check_n), without `await`.
    pub fn check_n_now<K: AsKey + ?Sized>(&self, key: &K, cost: u64) -> Answer {
        let key = key.as_key(self.scope);
        if let [limit] = &self.limits[..] {
            let charge = limit.charge(&key, cost, Duration::ZERO);
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
        f.debug_struct("Limiter")
            .field("scope", &self.scope)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

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
