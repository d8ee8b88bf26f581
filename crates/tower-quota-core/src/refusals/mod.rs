//! The refusal cache refuses requests that a shared store is known to refuse.
//!
//! A store sends the entries of the keys with each refusal. The cache remembers the last entry of each key, decides
//! further requests on a copy, and refuses what the copy refuses.
//!
//! # Why a refusal from memory is right
//!
//! The present instant of the store is at most the instant of the entry plus the time since the call was sent. The cache
//! decides at that latest instant, so the copy has refilled at least as much as the store. Other charges only leave less
//! in the store. Refunds, resets and charges through the cache end a record at once, and those of other processes end
//! with [`max_age`](RefusalCache::max_age).
//!
//! # Calls in flight
//!
//! When a unit comes back, all concurrent requests would call the store for the same unit. A call that the copy admits
//! therefore takes one unit of the copy, at any cost, until the answer arrives.
//!
//! Each such call leaves at least one unit less in the store. An admitted call takes a unit. If the store refuses the call,
//! other processes have taken a unit. The store therefore has no more units than the copy, if calls take equally long,
//! requests have the same limits, and the copy was not full meanwhile. Otherwise the cache may refuse a request for a
//! round trip too long. Requests never wait for each other.

mod call;
mod digest_hasher;
mod look_up;
mod memory;
mod record;
mod stats;

use core::fmt;
use core::future::{Future, ready};
use core::pin::Pin;
use core::time::Duration;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::join;

use self::call::CheckInFlight;
use self::look_up::LookUp;
use self::memory::{MAX_AGE, Memory};
pub use self::stats::RefusalStats;
use crate::charge::{Charge, Operation};
use crate::clock::{Clock, MonotonicClock};
use crate::decision::Decision;
use crate::key_hasher::KeyHasher;
use crate::status::LimitStatus;
use crate::store::{BoxStore, Store};
use crate::time::micros;

/// The future of a [`RefusalCache`], which records the answer of the store.
pub type RefusalFuture<S> =
    Pin<Box<dyn Future<Output = Result<Decision, <S as Store>::Error>> + Send>>;

/// A check that a [`RefusalCache`] has begun.
#[must_use = "the check is lost if you drop the answer"]
pub enum RefusalCheck<S: Store> {
    /// The request is known to be over a limit.
    Refused(Decision),
    /// The store decides the request.
    Sent {
        /// The answer of the store, which the cache records.
        answer: RefusalFuture<S>,
        /// The refusal to use if the store fails.
        known_refusal: Option<Decision>,
    },
}

/// Wraps a shared store, and answers known refusals in this process.
///
/// A flood of refused requests then costs the store few calls. During an outage, clients over a limit stay refused.
///
/// ```
/// use tower_quota_core::{Limiter, MemoryStore, Quota, RefusalCache};
///
/// # let shared_store = MemoryStore::new();
/// let limiter = Limiter::new(RefusalCache::new(shared_store), "mails", Quota::per_minute(100));
/// # let _ = limiter;
/// ```
///
/// The layer of `tower-quota` puts a cache in front of each shared store. Your own store takes part if you add
/// [entries](Decision::with_entries) to refusals.
///
/// # Behaviour
///
/// * The cache refuses a request of any cost if the last entries of the request's keys refuse the request. The decision has
///   the statuses of all limits. A key without a known entry has the statuses of a new client.
/// * When units come back, the cache sends one call for each unit.
/// * For up to [`max_age`](Self::max_age), you do not see refunds, resets and changed quotas of other processes. In the last
///   eighth of this time, one request renews the entry. While the store fails, entries serve for an hour.
/// * [Holds](crate::Quota::concurrent) alone refuse in the store only, because holds end at any time.
/// * Entries of a sliding log with more than 33 stamps are [abridged](crate::Entry::abridged). The reset time, and the retry
///   time of a large cost, are then too short.
///
/// # Penalties and counted refusals
///
/// Charges with a [penalty](Charge::penalty), [counted refusals](Charge::count_refusals) or a
/// [forced](crate::ChargeMode::Forced) mode have to reach the store. The cache sends such checks ten times a second for each
/// client. One more call carries the refusals in between, at the cost of the present request and with at most 32 strikes.
/// A tenth of a second of refusals is lost if the client then waits, the call fails, or you refund, charge or reset.
///
/// # Caveats
///
/// * The cache passes all calls to a store that is not [shared](Store::is_shared).
/// * While a call is in flight, the client may be refused for up to a round trip too long, if another process has taken the
///   unit of the call.
/// * If you drop the future of a refund, old refusals may hold for up to `max_age`.
#[must_use]
pub struct RefusalCache<S> {
    store: Arc<S>,
    memory: Arc<Memory>,
    max_age: u64,
}

impl<S> RefusalCache<S> {
    /// The default of [`max_age`](Self::max_age), one second.
    pub const DEFAULT_MAX_AGE: Duration = Duration::from_micros(MAX_AGE);
    /// The default of [`capacity`](Self::capacity), 16,384 keys.
    pub const DEFAULT_CAPACITY: usize = 16_384;

    /// Wraps a store, on the machine's monotonic clock.
    pub fn new(store: S) -> Self {
        Self::with_clock(store, MonotonicClock::new())
    }

    /// Wraps a store, on your clock. Only differences between instants matter.
    pub fn with_clock(store: S, clock: impl Clock) -> Self {
        let memory = Memory::new(Arc::new(clock), KeyHasher::random(), Self::DEFAULT_CAPACITY);
        Self {
            store: Arc::new(store),
            memory: Arc::new(memory),
            max_age: MAX_AGE,
        }
    }

    /// Sets how long the cache uses an entry, from before the call was sent. Defaults to one second.
    ///
    /// With zero, all requests call the store, and the cache remembers entries for outages only.
    pub fn max_age(self, longest: Duration) -> Self {
        Self {
            max_age: micros(longest),
            ..self
        }
    }

    /// Sets the number of remembered keys, of about half a kilobyte. Defaults to 16,384.
    ///
    /// A full cache drops the key that is of use for the shortest time. With 0, the cache remembers no keys. The returned
    /// cache is empty and shares no keys with clones.
    pub fn capacity(self, keys: usize) -> Self {
        let hasher = self.memory.hasher;
        self.with_memory(hasher, keys)
    }

    /// Sets the hasher of the keys, for simulations that have to repeat.
    ///
    /// The hash of a key decides which other keys share its lock. After a reset of one of them, the cache does not
    /// remember the answers to calls in flight. The returned cache is empty and shares no keys with clones.
    #[doc(hidden)]
    pub fn hasher(self, hasher: KeyHasher) -> Self {
        let keys = self.memory.capacity;
        self.with_memory(hasher, keys)
    }

    fn with_memory(self, hasher: KeyHasher, keys: usize) -> Self {
        let memory = Memory::new(Arc::clone(&self.memory.clock), hasher, keys);
        Self {
            memory: Arc::new(memory),
            ..self
        }
    }

    /// Returns the wrapped store. The cache does not see operations on the store.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// Returns figures of the cache and all clones.
    pub fn stats(&self) -> RefusalStats {
        self.memory.stats()
    }

    /// Returns the present status of a limit by the last known entry of the key, unless the limit has holds.
    ///
    /// If the quota of the charge differs from the store's quota, the entry is converted. An instance's share is an example.
    pub fn known_status(&self, charge: &Charge<'_>) -> Option<LimitStatus> {
        if charge.is_hold() {
            return None;
        }
        let memory = &self.memory;
        let now = memory.clock.now().as_micros();
        let digest = memory.hasher.digest(charge.key());
        let mut known = memory.change(digest, |record| record.known(now))??;
        let charges = [charge.cost(0)];
        let decision = known
            .entry
            .decide(Operation::Check, &charges, known.store_now);
        decision.statuses().first().copied()
    }
}

impl<S: Store> RefusalCache<S> {
    /// Returns a cache that shares the store and the remembered entries, with a type that does not name the store.
    pub fn boxed(&self) -> RefusalCache<BoxStore> {
        RefusalCache {
            store: Arc::new(BoxStore::new(Arc::clone(&self.store))),
            memory: Arc::clone(&self.memory),
            max_age: self.max_age,
        }
    }

    /// Refuses a request that is known to be over a limit, or else sends the check to the store.
    pub fn begin(&self, charges: &[Charge<'_>]) -> RefusalCheck<S> {
        if !self.remembers() {
            return RefusalCheck::Sent {
                answer: self.store.check(charges).boxed(),
                known_refusal: self.store.known_refusal(charges),
            };
        }
        let look_up = self.memory.look_up(charges);
        match self.refuse(&look_up) {
            Some(refusal) => RefusalCheck::Refused(refusal),
            None => {
                let (answer, known_refusal) = self.send_known(look_up);
                RefusalCheck::Sent {
                    answer,
                    known_refusal,
                }
            }
        }
    }

    /// Returns the refusal of a request that is known to be over a limit, unless the store has to decide.
    pub fn refusal(&self, charges: &[Charge<'_>]) -> Option<Decision> {
        if !self.remembers() {
            return None;
        }
        self.refuse(&self.memory.look_up(charges))
    }

    /// Sends a check to the store, and records the answer.
    ///
    /// Returns the future of the answer, and the refusal to use if the store fails. Call [`refusal`](Self::refusal) first.
    pub fn send(&self, charges: &[Charge<'_>]) -> (RefusalFuture<S>, Option<Decision>) {
        if !self.remembers() {
            let known_refusal = self.store.known_refusal(charges);
            return (self.store.check(charges).boxed(), known_refusal);
        }
        self.send_known(self.memory.look_up(charges))
    }

    fn refuse(&self, look_up: &LookUp<'_>) -> Option<Decision> {
        let refusal = look_up.refusal(self.max_age)?;
        if look_up.is_due(self.max_age) {
            return None;
        }
        self.memory.count_refusal(look_up);
        Some(refusal)
    }

    /// Sends a check, and returns the refusal to use if the store fails.
    fn send_known(&self, look_up: LookUp<'_>) -> (RefusalFuture<S>, Option<Decision>) {
        let (memory, charges) = (&self.memory, look_up.charges);
        let uncounted = memory.take_uncounted(&look_up);
        // If the copies admit the request, the client has waited as promised, and earlier refusals
        // no longer count.
        let known_refusal = look_up.refusal(u64::MAX);
        let counts = !uncounted.is_empty() && known_refusal.is_some();
        let call = CheckInFlight::begin(memory, look_up, known_refusal.is_none());
        // The answer may come too late for the caller, who then uses this.
        let known_refusal = known_refusal.or_else(|| self.store.known_refusal(charges));
        let counted = counts.then(|| self.store.apply(Operation::Refuse, &uncounted));
        let answer = self.store.check(charges);
        let answer = async move {
            let answer = match counted {
                // Send both calls together, so that the request waits for one round trip.
                Some(counted) => join(counted, answer).await.1,
                None => answer.await,
            };
            if let Ok(decision) = &answer {
                call.finish(decision);
            }
            answer
        };
        (answer.boxed(), known_refusal)
    }

    fn remembers(&self) -> bool {
        self.store.is_shared() && self.memory.shard_capacity > 0
    }
}

impl<S: Store> Store for RefusalCache<S> {
    type Error = S::Error;
    type Future = RefusalFuture<S>;

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future {
        if operation == Operation::Check {
            return match self.begin(charges) {
                RefusalCheck::Refused(refusal) => ready(Ok(refusal)).boxed(),
                RefusalCheck::Sent {
                    answer,
                    known_refusal: None,
                } => answer,
                RefusalCheck::Sent {
                    answer,
                    known_refusal: Some(refusal),
                } => answer.map(|answer| answer.or(Ok(refusal))).boxed(),
            };
        }
        let is_stale = match operation {
            Operation::Charge | Operation::Surcharge { .. } | Operation::Reset => true,
            // Refunds of holds change no record, because only the store refuses by holds.
            Operation::Refund { .. } => !charges.iter().all(Charge::is_hold),
            _ => false,
        };
        let answer = self.store.apply(operation, charges);
        if !is_stale || !self.remembers() {
            return answer.boxed();
        }
        let memory = Arc::clone(&self.memory);
        let digests = charges
            .iter()
            .map(|charge| memory.hasher.digest(charge.key()));
        let digests: Vec<u128> = digests.collect();
        memory.forget(&digests);
        answer.inspect(move |_| memory.forget(&digests)).boxed()
    }

    #[inline]
    fn check_at_once(&self, charges: &[Charge<'_>], decision: &mut Decision) -> bool {
        self.store.check_at_once(charges, decision)
    }

    fn known_refusal(&self, charges: &[Charge<'_>]) -> Option<Decision> {
        let known = || self.memory.look_up(charges).refusal(u64::MAX);
        let known = self.remembers().then(known).flatten();
        known.or_else(|| self.store.known_refusal(charges))
    }

    #[inline]
    fn is_shared(&self) -> bool {
        self.store.is_shared()
    }

    fn identity(&self) -> Option<usize> {
        self.store.identity()
    }

    fn close(&self, deadline: Duration) -> impl Future<Output = bool> + Send {
        self.store.close(deadline)
    }
}

impl<S> Clone for RefusalCache<S> {
    /// Clones share the store and the remembered entries.
    fn clone(&self) -> Self {
        Self {
            store: Arc::clone(&self.store),
            memory: Arc::clone(&self.memory),
            max_age: self.max_age,
        }
    }
}

impl<S: Store> fmt::Debug for RefusalCheck<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refused(_) => "Refused",
            Self::Sent { .. } => "Sent",
        })
    }
}

impl<S: fmt::Debug> fmt::Debug for RefusalCache<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RefusalCache")
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}
