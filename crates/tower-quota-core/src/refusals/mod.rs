//! The refusal cache: answers known refusals without asking a shared store.
//!
//! A store that refuses a request sends the entries of the request's keys. The cache keeps the last entry of each key,
//! and decides further requests on a copy. If the copy refuses a request, the cache refuses it.
//!
//! # Why a refusal from memory is right
//!
//! The cache knows the store's instant of the entry, and the local instant before the call was sent. The store's present
//! instant is at most the first one plus the time since the second one. The copy is decided at that instant, so it
//! has refilled at least as much as the store. Charges since then only leave less in the store. Refunds, resets and
//! charges through this cache end the record when they are sent and when they end. Those of other processes are seen
//! after [`max_age`](RefusalCache::max_age).
//!
//! # Calls in flight
//!
//! When a unit comes back, all concurrent requests would ask for it. So a call takes one unit of the copy when it is
//! sent, whatever it costs, and the copy admits as many calls as units came back. An admitted call charges the entry, a
//! refused one replaces it, and after a failed or dropped one the copy is made again from the entry.
//!
//! One unit is what a call leaves missing in the store, whatever the answer. If the store admits the call, it takes at
//! least one unit. If the store refuses the call, then other processes have taken at least one unit, since requests
//! take whole units and the copy had enough. So the store has no more left than the copy when the next request would
//! reach it, if calls take equally long, requests have the same limits and the copy was not full since its entry was
//! sent. Otherwise a request may be refused until the answer of the call, at most for a round trip. No request waits for
//! the answer to another one.
//!
//! | file | has |
//! |---|---|
//! | `record.rs` | the last entry of a key, and the copy that calls in flight have charged |
//! | `look_up.rs` | what is known of a request's keys, and the decision on copies |
//! | `memory.rs` | the table of the records |
//! | `call.rs` | a call in flight, which records its answer |

mod call;
mod counted;
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

use self::call::{ChangeInFlight, CheckInFlight};
use self::memory::{MAX_AGE, Memory};
pub use self::stats::RefusalStats;
use crate::charge::{Charge, Operation};
use crate::clock::{Clock, MonotonicClock};
use crate::decision::Decision;
use crate::status::LimitStatus;
use crate::store::Store;
use crate::time::micros;

/// The future of a [`RefusalCache`], which records the answer.
pub type RefusalFuture<S> =
    Pin<Box<dyn Future<Output = Result<Decision, <S as Store>::Error>> + Send>>;

/// A store wrapper that remembers refusals of a shared store and answers them in this process.
///
/// A flood of refused requests then costs the shared store few calls, and an outage of the store releases no client
/// that is known to be over its limit.
///
/// ```
/// use tower_quota_core::{Limiter, MemoryStore, Quota, RefusalCache};
///
/// # let shared_store = MemoryStore::new();
/// let limiter = Limiter::new(RefusalCache::new(shared_store), "mails", Quota::per_minute(100));
/// # let _ = limiter;
/// ```
///
/// The layer of `tower-quota` has a cache before each shared store. A store of your own takes part if it adds
/// [entries](Decision::with_entries) to its refusals.
///
/// # Behaviour
///
/// * The cache refuses a request if the store's last entries of its keys refuse it, at any cost. The statuses are those
///   of all its limits. If no entry of a key is known, its limits have the statuses of a new client.
/// * When units come back, the cache sends one call for each unit. No request waits for another one.
/// * An entry is used for at most [`max_age`](Self::max_age), counted from before its call was sent. In this time, you
///   do not see refunds, resets and changed quotas of other processes. Those through this cache and its clones end
///   a refusal at once. In the last eighth of this time, one request at a time asks the store to renew the entry.
/// * A request with a [hold](crate::Quota::concurrent) is refused by the store alone, because holds end at any time.
/// * While the store fails, entries up to an hour old refuse requests, without the bound.
/// * Entries of a sliding log with more than 33 stamps are [abridged](crate::Entry::abridged). The time until such a
///   limit resets is then too short, and also the retry time of a large cost.
///
/// # Penalties and counted refusals
///
/// If a charge has a [penalty](Charge::penalty) or [counted refusals](Charge::count_refusals), or is
/// [forced](crate::ChargeMode::Forced), a check reaches the store ten times a second for each client. One more call
/// carries the refusals in between, at the cost of that request and with at most 32 strikes. The cache loses up to a
/// tenth of a second of them if the client then waits as long as it was told, if the call fails, or if units are
/// refunded, charged or reset.
///
/// # Caveats
///
/// * A store that is not [shared](Store::is_shared) is asked directly, and nothing is remembered.
/// * A request that is refused while a call of its client is in flight may be refused for up to a round trip too long,
///   if another process has taken the unit of that call.
/// * A refund whose future is dropped may reach the store later. Refusals are then up to `max_age` old.
pub struct RefusalCache<S, C = MonotonicClock> {
    store: Arc<S>,
    memory: Arc<Memory<C>>,
    max_age: u64,
}

impl<S: Store> RefusalCache<S> {
    /// Wraps a store, with the machine's monotonic clock.
    #[must_use]
    pub fn new(store: S) -> Self {
        Self::with_clock(store, MonotonicClock::new())
    }
}

impl<S, C: Clock> RefusalCache<S, C> {
    /// The default of [`max_age`](Self::max_age): one second.
    pub const DEFAULT_MAX_AGE: Duration = Duration::from_micros(MAX_AGE);
    /// The default of [`capacity`](Self::capacity): 16,384 keys.
    pub const DEFAULT_CAPACITY: usize = 16_384;

    /// Wraps a store, with this clock. Only differences of its instants matter.
    #[must_use]
    pub fn with_clock(store: S, clock: C) -> Self {
        Self {
            store: Arc::new(store),
            memory: Arc::new(Memory::new(clock, Self::DEFAULT_CAPACITY)),
            max_age: MAX_AGE,
        }
    }

    /// Sets how long a refusal is used, from before its call was sent. The default is one second.
    ///
    /// Zero asks the store each time. The cache still remembers entries for outages.
    #[must_use]
    pub fn max_age(self, longest: Duration) -> Self {
        Self {
            max_age: micros(longest),
            ..self
        }
    }

    /// Sets how many keys are remembered, each in about half a kilobyte. The default is 16,384.
    ///
    /// The keys that are used for the shortest time give way first. With 0 nothing is remembered. The cache starts
    /// empty and is no longer shared with its clones.
    #[must_use]
    pub fn capacity(self, keys: usize) -> Self
    where
        C: Clone,
    {
        Self {
            memory: Arc::new(Memory::new(self.memory.clock.clone(), keys)),
            ..self
        }
    }

    /// Returns the wrapped store. The cache does not see operations on it.
    #[must_use]
    pub fn store(&self) -> &S {
        &self.store
    }

    /// Returns figures of this cache and its clones.
    #[must_use]
    pub fn stats(&self) -> RefusalStats {
        self.memory.stats()
    }
}

impl<S: Store, C: Clock> RefusalCache<S, C> {
    /// Refuses a request that is known to be over its limits. Returns `None` if the store has to decide.
    pub fn refusal(&self, charges: &[Charge<'_>]) -> Option<Decision> {
        if !self.remembers() {
            return None;
        }
        let look_up = self.memory.look_up(charges);
        let refusal = look_up.refusal(self.max_age)?;
        if look_up.is_due(self.max_age) {
            return None;
        }
        self.memory.count_refusal(&look_up);
        Some(refusal)
    }

    /// Sends a check to the store, and records the answer.
    ///
    /// Returns the answer to come, and the refusal that holds if the store fails. Call [`refusal`](Self::refusal) first.
    pub fn send(&self, charges: &[Charge<'_>]) -> (RefusalFuture<S>, Option<Decision>) {
        if !self.remembers() {
            return (self.store.check(charges).boxed(), None);
        }
        let memory = &self.memory;
        let look_up = memory.look_up(charges);
        let uncounted = memory.take_uncounted(&look_up);
        // If the copies admit the request, its client has waited. To count earlier requests now would break that promise.
        let counts = !uncounted.is_empty() && look_up.refusal(self.max_age).is_some();
        let known_refusal = look_up.refusal(u64::MAX);
        let call = CheckInFlight::begin(memory, look_up);
        let counted = counts.then(|| self.store.apply(Operation::Refuse, &uncounted));
        let answer = self.store.check(charges);
        let answer = async move {
            let answer = match counted {
                // They are sent together, so that the request waits for one round trip.
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

    /// Returns the present status of a limit, as the last entry of its key leaves it. `None` if no entry is known.
    ///
    /// The charge's quota may differ from the store's, such as an instance's share. The entry is then converted.
    pub fn known_status(&self, charge: &Charge<'_>) -> Option<LimitStatus> {
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

    fn remembers(&self) -> bool {
        self.store.is_shared() && self.memory.shard_capacity > 0
    }
}

impl<S: Store, C: Clock> Store for RefusalCache<S, C> {
    type Error = S::Error;
    type Future = RefusalFuture<S>;

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future {
        if operation == Operation::Check {
            if let Some(refusal) = self.refusal(charges) {
                return ready(Ok(refusal)).boxed();
            }
            return match self.send(charges) {
                (answer, None) => answer,
                (answer, Some(known)) => answer.map(|answer| answer.or(Ok(known))).boxed(),
            };
        }
        // Neither counted refusals nor renewals give units back.
        let changes_nothing = matches!(
            operation,
            Operation::Peek | Operation::Refuse | Operation::Renew { .. }
        );
        if changes_nothing || !self.remembers() {
            return self.store.apply(operation, charges).boxed();
        }
        let change = ChangeInFlight::begin(&self.memory, charges);
        let answer = self.store.apply(operation, charges);
        answer.inspect(move |_| drop(change)).boxed()
    }

    #[inline]
    fn check_at_once(&self, charges: &[Charge<'_>], decision: &mut Decision) -> bool {
        self.store.check_at_once(charges, decision)
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

impl<S, C> Clone for RefusalCache<S, C> {
    /// Clones share the store, and what is remembered.
    fn clone(&self) -> Self {
        Self {
            store: Arc::clone(&self.store),
            memory: Arc::clone(&self.memory),
            max_age: self.max_age,
        }
    }
}

impl<S: fmt::Debug, C> fmt::Debug for RefusalCache<S, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RefusalCache")
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}
