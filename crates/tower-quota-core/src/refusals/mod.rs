//! The refusal cache: answers known refusals without asking a shared store.
//!
//! ```text
//! check ─▶ ChargeView: the tag of limit and key, the quota's fingerprint, the cost
//!           ▼
//!         the table: does an entry refuse one of the charges?   yes: a decision with what is left of the wait
//!           ▼ no
//!         does a young call take what a bucket's entry says is left?   yes: the request waits for it and looks again
//!           ▼ no
//!         the calls under way about each tag are noted, the store is asked
//!           ▼
//!         a refusal is recorded, unless a refund, a reset, a charge or another quota was asked for meanwhile
//! ```
//!
//! A store that refuses a request for `d` refuses it until `d` after the call was sent, since the call was sent before
//! it was decided. More units used meanwhile only prolong that. Units given back, and other quotas, shorten it: those of
//! this process end the memory at once, those of other processes within the [bound](RefusalCache::max_age).
//!
//! An admission that leaves a limit too little for the next request says the same: from a bucket's state follows when
//! the cost fits again, and of a window the store says it.
//!
//! | file | has |
//! |---|---|
//! | `view.rs` | one charge, as the table sees it |
//! | `entry.rs` | what is remembered of one limit of one key, and which charges it refuses |
//! | `known_limits.rs` | a few entries, which are read without a lock |
//! | `bucket.rs` | entries, and the calls under way about them |
//! | `memory.rs` | the table and its clock |
//! | `call.rs` | a call under way, which records its answer |
//! | `shared_call.rs` | a call that several requests wait for |
//! | `uncounted.rs` | refusals that the store has yet to count |

mod bucket;
mod call;
mod entry;
mod future;
mod known_limits;
mod memory;
mod shared_call;
mod stats;
mod uncounted;
mod view;

use core::fmt;
use core::future::Future;
use core::sync::atomic::Ordering;
use core::time::Duration;
use std::sync::Arc;

use smallvec::SmallVec;

use self::call::TrackedCall;
pub use self::future::RefusalFuture;
use self::memory::{Checked, Memory};
use self::shared_call::Role;
pub use self::stats::RefusalStats;
use self::view::Views;
use crate::charge::{Charge, Operation, OwnedCharge};
use crate::clock::{Clock, MonotonicClock};
use crate::decision::Decision;
use crate::status::LimitStatus;
use crate::store::Store;
use crate::time::micros;

/// The most answers to other requests that a request waits for before it asks the store itself.
///
/// The first one may be a refusal that ended while it was on its way: the call was sent a little too early.
const MOST_WAITS: u32 = 2;

/// The waits that a request has left, and what a failure means to its caller.
#[derive(Clone, Copy)]
struct Waits {
    /// The answers that it may still wait for.
    left: u32,
    /// Says whether a known refusal takes the place of an error. A caller of `ask` gets both.
    covers_failures: bool,
}

/// A store wrapper that remembers refusals of a shared store and answers them in this process.
///
/// A flood of refused requests then costs the shared store almost nothing, and an outage of the store releases no
/// client that is known to be over its limit.
///
/// ```
/// use tower_quota_core::{Limiter, MemoryStore, Quota, RefusalCache};
///
/// # let shared_store = MemoryStore::new();
/// let limiter = Limiter::new(RefusalCache::new(shared_store), "mails", Quota::per_minute(100));
/// # let _ = limiter;
/// ```
///
/// The layer of `tower-quota` has one before each shared store.
///
/// # What is answered
///
/// * A request is refused from memory if one of its limits is known to refuse its cost, a smaller cost or a longer
///   accepted wait. It is also known to refuse a cost from the admission that took its last units, if the store says
///   when as much fits again. The remaining time falls as time passes. A limit of which nothing is remembered has no
///   status then.
/// * When a unit comes back, one request asks for it. Others of its client wait for that answer, and ask the store only
///   if it leaves something for them: a flood costs a call or two for each unit. For as many units as came back, as
///   many requests ask. A call is joined for 20 ms: a slower store gets one more in each 20 ms. A request waits for two
///   answers at most, and for none after one that failed, so it may take three times the store's deadline. Once more
///   than one unit of a window may have come back, its requests all ask.
/// * Everything else asks the store: smaller costs, other quotas of the limit, costs above the capacity, peeks.
/// * A refusal is used for at most [`max_age`](Self::max_age), counted from before the call was sent. In this time a
///   refund or a reset by another process is not seen. Those through this wrapper and its clones are seen at once.
/// * While the store fails, a check that is known to be refused is refused for as long as the store said, without the
///   bound.
///
/// # Penalties and counted refusals
///
/// A request of a limit with a [penalty](Charge::penalty) or [counted refusals](Charge::count_refusals) reaches the
/// store at most ten times a second for each client. That call carries the refusals in between. Up to a tenth of a
/// second of them is lost if the client then stops, if the call fails, or if units are refunded, charged or reset; and of
/// strikes, more than one call may carry: 32 charges.
///
/// # Caveats
///
/// * A store that is not [shared](Store::is_shared) is asked directly, and nothing is remembered.
/// * Of a request that costs more than the remembered one, the wait is exact for fixed windows, and to a microsecond for
///   buckets. It may be too short for sliding windows and logs, and if another limit of the request was used up meanwhile.
///   Where the store counts by a smaller burst than the limit's, as with leases, it is up to a unit's time too long.
/// * A refund whose future is dropped may reach the store later. Refusals are then up to `max_age` old.
pub struct RefusalCache<S, C = MonotonicClock> {
    store: Arc<S>,
    memory: Arc<Memory<C>>,
    max_age_micros: u64,
}

impl<S: Store> RefusalCache<S> {
    /// Wraps a store, with the machine's monotonic clock.
    #[must_use]
    pub fn new(store: S) -> Self {
        Self::with_clock(store, MonotonicClock::new())
    }
}

impl<S, C> RefusalCache<S, C> {
    /// The default of [`max_age`](Self::max_age): one second.
    pub const DEFAULT_MAX_AGE: Duration = Duration::from_micros(entry::USED);
    /// The default of [`capacity`](Self::capacity): 16,384 limits of a key.
    pub const DEFAULT_CAPACITY: usize = 16_384;

    /// Wraps a store, with this clock. Only differences of its instants matter.
    #[must_use]
    pub fn with_clock(store: S, clock: C) -> Self {
        let memory = Arc::new(Memory::new(clock, Self::DEFAULT_CAPACITY));
        Self {
            store: Arc::new(store),
            memory,
            max_age_micros: micros(Self::DEFAULT_MAX_AGE),
        }
    }

    /// Sets how long a refusal is used, from before its call was sent. The default is one second.
    ///
    /// Zero asks the store each time. What an outage needs is still remembered.
    #[must_use]
    pub fn max_age(self, longest: Duration) -> Self {
        Self {
            max_age_micros: micros(longest),
            ..self
        }
    }

    /// Returns the wrapped store. Operations on it are not seen by the cache.
    #[must_use]
    pub fn store(&self) -> &S {
        &self.store
    }

    /// Returns figures of this cache and its clones.
    #[must_use]
    pub fn stats(&self) -> RefusalStats {
        self.memory.stats()
    }

    /// Remembers the last status of all limits from now on, also of admitted requests; or no longer.
    ///
    /// [`last_status`](Self::last_status) reads it. It is off by default.
    pub fn remember_statuses(&self, remembers: bool) {
        self.memory
            .remembers_statuses
            .store(remembers, Ordering::Relaxed);
    }
}

impl<S, C: Clock + Clone> RefusalCache<S, C> {
    /// Sets how many limits of a key are remembered, each in about 140 bytes, eight of them at a time. The default is
    /// 16,384.
    ///
    /// Statuses give way first, then the refusals that are used for the shortest time. With 0 nothing is remembered.
    /// The cache starts empty and is no longer shared with its clones.
    #[must_use]
    pub fn capacity(self, limits: usize) -> Self {
        let mut memory = Memory::new(self.memory.clock.clone(), limits);
        *memory.remembers_statuses.get_mut() = self.memory.remembers_statuses();
        Self {
            memory: Arc::new(memory),
            ..self
        }
    }
}

impl<S: Store, C: Clock> RefusalCache<S, C> {
    /// Refuses a request that is known to be over its limits, and writes the decision.
    ///
    /// Returns `false`, and does nothing, if the store has to be asked.
    #[inline]
    pub fn refuse_at_once(&self, charges: &[Charge<'_>], decision: &mut Decision) -> bool {
        // Constant for a store in memory, for which nothing of this is compiled.
        self.store.is_shared() && self.max_age_micros > 0 && self.refuse_known(charges, decision)
    }

    fn refuse_known(&self, charges: &[Charge<'_>], decision: &mut Decision) -> bool {
        let now = self.memory.now();
        let max_age = self.max_age_micros;
        self.memory.may_refuse(now)
            && self.memory.refuse(
                Checked {
                    charges,
                    views: &self.memory.views(charges),
                    now,
                    max_age,
                },
                decision,
            )
    }

    /// Asks the store, without a look at the known refusals.
    ///
    /// Returns the answer to come, and the refusal that holds if the store fails to answer: that of a client known to be
    /// over its limit, however old it is.
    pub fn ask(&self, charges: &[Charge<'_>]) -> (RefusalFuture<S>, Option<Decision>) {
        if !self.remembers() {
            return (RefusalFuture::direct(self.store.check(charges)), None);
        }
        self.ask_store(
            self.memory.views(charges),
            charges,
            Waits {
                left: MOST_WAITS,
                covers_failures: false,
            },
        )
    }

    /// Records a decision that the store made at once.
    ///
    /// It does nothing unless statuses are [remembered](Self::remember_statuses).
    #[inline]
    pub fn record_at_once(&self, charges: &[Charge<'_>], decision: &Decision) {
        // Constant for a store in memory, for which nothing of this is compiled.
        if self.remembers() && self.memory.remembers_statuses() && decision.is_allowed() {
            TrackedCall::begin(&self.memory, self.memory.views(charges), Operation::Check)
                .record(decision);
        }
    }

    /// Returns the present status of a limit, as the store's last answer leaves it.
    ///
    /// It is in units of the charge's quota, which may be a share of the store's: as large a part of it is used, in full
    /// units, and no more is left than of the store's, to within a unit. A bucket refills, and a window keeps what is
    /// used until it resets. The outcome is always `Allow`. Returns `None` if nothing is known.
    pub fn last_status(&self, charge: &Charge<'_>) -> Option<LimitStatus> {
        let view = *self.memory.views(&[*charge]).first()?;
        Some(
            self.memory
                .entry(&view)?
                .share_status(charge, self.memory.now()),
        )
    }

    fn remembers(&self) -> bool {
        self.store.is_shared() && !self.memory.is_empty()
    }

    /// Asks the store, or waits for a call under way that probably takes what the request would ask for.
    fn ask_store(
        &self,
        views: Views,
        charges: &[Charge<'_>],
        waits: Waits,
    ) -> (RefusalFuture<S>, Option<Decision>) {
        let request = Checked {
            charges,
            views: &views,
            now: self.memory.now(),
            max_age: u64::MAX,
        };
        let known = if self.memory.may_refuse(request.now) {
            self.memory.known_refusal(request)
        } else {
            None
        };
        // Without an age no answer says anything to another request.
        let role = if self.max_age_micros > 0 {
            self.memory.role(request)
        } else {
            Role::Alone
        };
        let answer = match role {
            Role::Follows(call) if waits.left > 0 => {
                let (cache, owned) = (
                    self.clone(),
                    charges.iter().map(OwnedCharge::from).collect::<Vec<_>>(),
                );
                RefusalFuture::tracked(async move {
                    // After a failure each asks for itself.
                    let left = if call.await { waits.left - 1 } else { 0 };
                    let answer = cache.check_again(views, &owned, Waits { left, ..waits });
                    answer.await
                })
            }
            Role::Leads(tag) => {
                let (call, answer) = shared_call::share(self.send_check(views, charges));
                self.memory.share(tag, &call);
                RefusalFuture::tracked(answer)
            }
            _ => RefusalFuture::tracked(self.send_check(views, charges)),
        };
        (answer, known)
    }

    /// Checks a request that has waited for another one's answer.
    fn check_again(&self, views: Views, owned: &[OwnedCharge], waits: Waits) -> RefusalFuture<S> {
        let charges: SmallVec<[Charge<'_>; 4]> = owned.iter().map(OwnedCharge::as_charge).collect();
        match self.refusal(&views, &charges) {
            Some(known) => RefusalFuture::tracked(core::future::ready(Ok(known))),
            None if waits.covers_failures => self.check_with_refusal(views, &charges, waits),
            None => self.ask_store(views, &charges, waits).0,
        }
    }

    /// Asks the store, and refuses what is known to be refused if it fails.
    fn check_with_refusal(
        &self,
        views: Views,
        charges: &[Charge<'_>],
        waits: Waits,
    ) -> RefusalFuture<S> {
        match self.ask_store(views, charges, waits) {
            (answer, None) => answer,
            (answer, Some(known)) => {
                RefusalFuture::tracked(async move { answer.await.or(Ok(known)) })
            }
        }
    }

    /// Refuses a request that is known to be over its limits.
    fn refusal(&self, views: &Views, charges: &[Charge<'_>]) -> Option<Decision> {
        let mut known = Decision::default();
        let request = Checked {
            charges,
            views,
            now: self.memory.now(),
            max_age: self.max_age_micros,
        };
        self.memory.refuse(request, &mut known).then_some(known)
    }

    /// Sends a check, with the refusals that the store has yet to count.
    fn send_check(
        &self,
        views: Views,
        charges: &[Charge<'_>],
    ) -> impl Future<Output = StoreAnswer<S>> + Send + use<S, C> {
        let request = Checked {
            charges,
            views: &views,
            now: self.memory.now(),
            max_age: self.max_age_micros,
        };
        let refused = if self.memory.may_refuse(request.now) {
            self.memory.known_refusal(request)
        } else {
            None
        };
        let count = views.len();
        let call = TrackedCall::begin(&self.memory, views, Operation::Check);
        let uncounted = call.uncounted(charges);
        // A request that is refused in any case only has to be counted: one call for it and for those before it.
        let (carried, answer) = match &refused {
            Some(_) => {
                let all: Vec<Charge<'_>> = charges.iter().copied().chain(uncounted).collect();
                (None, self.store.apply(Operation::Refuse, &all))
            }
            None if uncounted.is_empty() => (None, self.store.check(charges)),
            None => (
                Some(self.store.apply(Operation::Refuse, &uncounted)),
                self.store.check(charges),
            ),
        };
        async move {
            if let Some(carried) = carried {
                // Its error has no reader: the check that follows meets the same store.
                let _ = carried.await;
            }
            let decision = answer.await?;
            let Some(refused) = refused else {
                call.record(&decision);
                return Ok(decision);
            };
            let own = decision.statuses().iter().copied().take(count);
            let own = Decision::from_statuses(Operation::Refuse, decision.at(), own);
            call.record(&own);
            // It was counted as refused, so it is refused also where the store would admit the next one.
            Ok(if own.is_allowed() { refused } else { own })
        }
    }
}

/// The answer of a wrapped store.
type StoreAnswer<S> = Result<Decision, <S as Store>::Error>;

impl<S: Store, C: Clock> Store for RefusalCache<S, C> {
    type Error = S::Error;
    type Future = RefusalFuture<S>;

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future {
        // Refusals that a caller counts give no units back, and end none that is remembered.
        if !self.remembers() || matches!(operation, Operation::Peek | Operation::Refuse) {
            return RefusalFuture::direct(self.store.apply(operation, charges));
        }
        let views = self.memory.views(charges);
        if operation != Operation::Check {
            let call = TrackedCall::begin(&self.memory, views, operation);
            let answer = self.store.apply(operation, charges);
            return RefusalFuture::tracked(async move {
                let decision = answer.await?;
                call.record(&decision);
                Ok(decision)
            });
        }
        if let Some(known) = self.refusal(&views, charges) {
            return RefusalFuture::tracked(core::future::ready(Ok(known)));
        }
        self.check_with_refusal(
            views,
            charges,
            Waits {
                left: MOST_WAITS,
                covers_failures: true,
            },
        )
    }

    #[inline]
    fn check_at_once(&self, charges: &[Charge<'_>], decision: &mut Decision) -> bool {
        if self.store.check_at_once(charges, decision) {
            self.record_at_once(charges, decision);
            return true;
        }
        self.refuse_at_once(charges, decision)
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
            max_age_micros: self.max_age_micros,
        }
    }
}

impl<S: fmt::Debug, C> fmt::Debug for RefusalCache<S, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RefusalCache")
            .field("store", &self.store)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
