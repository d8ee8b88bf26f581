//! The store in this process.
//!
//! ```text
//! MemoryStore ── shards, each behind a mutex; the last one has only the row of Key::EVERYONE
//!   Shard ── rows          a hash table of 32 bytes a row, at most three quarters full in a full store
//!         ── definitions   each limit and quota once, shared by the rows
//!         ── evicted       what is remembered of evicted rows: spent limits (filter), uses (sketch)
//!   Row   ── hash          stands for the key
//!         ── touched       instant of the last change, whether it was refused, how often it was used
//!         ── content       one count, several counts, or an entry of the model
//! ```
//!
//! A request is decided in one of two ways. All shards of its keys are locked first, in their order.
//!
//! 1. `rows`: plain charges of buckets and windows, in any order and of any keys, on the counts of the rows.
//! 2. `model`: everything else, by [`decide`](crate::decide()) on entries that are taken out of their rows.
//!
//! The differential test holds one to the other. To add an algorithm, you change nothing here: its state is kept as an
//! entry of the model, or as a count if `Counting::packed` fits it into a word.

mod capacity;
#[cfg(test)]
mod contention;
mod definition;
mod evict;
mod evicted;
mod filter;
mod model;
mod place;
mod plain;
mod restored;
mod row;
mod rows;
mod shard;
mod sketch;
mod stats;

use core::convert::Infallible;
use core::future::{Ready, ready};
use core::sync::atomic::Ordering::Relaxed;
use core::{array, fmt};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use siphasher::sip::SipHasher13;

use self::capacity::Capacity;
use self::row::LATEST;
use self::rows::Request;
use self::shard::Shard;
pub use self::stats::MemoryStats;
use crate::answer::Answer;
use crate::charge::{Charge, Operation};
use crate::clock::{Clock, MonotonicClock};
use crate::decision::Decision;
use crate::key::Key;
use crate::store::Store;
use crate::sync::{Mutex, locked};
use crate::time::Timestamp;

/// The store in this process: nothing to install, nothing to wait for.
///
/// Clones share the counters. The store decides all charges of a request in one atomic step, also if they count
/// different keys.
///
/// The store keeps keys as 64-bit hashes (SipHash-1-3) under a random seed. Clients who do not know the seed cannot
/// choose keys that share a hash. Among a million entries, a new key shares a hash with one of them with a probability
/// of 1 in 18 million million.
///
/// # Memory
///
/// An entry with one limit takes 44 to 90 bytes, with up to three limits 72 more, for keys of any length.
/// Entries with logs, windows that begin with a request, holds, and buckets whose requests wait or settle take hundreds
/// of bytes. An entry takes one place of the capacity, and one more for each kilobyte of its logs.
///
/// The store remembers at most `capacity` entries, one million by default. The entry of [`Key::EVERYONE`] takes no place
/// and is never evicted. No background task runs. A full store drops or evicts an entry for each new one, in this order:
///
/// 1. An entry that is full again. Nothing is lost.
/// 2. Of the next few entries, the least used one that was neither refused nor spent at its last request. Its client
///    starts full. The store remembers how often the client came, so that a client who returns is not evicted again
///    before clients who come less often.
/// 3. If all of them are limited, the least used one. The store remembers its spent limits until one unit fits again.
///    If the client comes back sooner, these limits are still spent.
///
/// A flood of new keys therefore never releases a limited client. A client whose entry is evicted before it is full may
/// take the capacity of the quota once more. A full store admits at most that much more than a store with room for all,
/// once for each of [`evicted`](Self::evicted).
///
/// The memory of evicted entries takes about 32 bytes for each place. It holds 1.2 spent limits for each place without a
/// loss. Beyond that, it forgets the limits whose wait ends first. A new key is mistaken for an evicted one at most 1 time
/// in 16,000, for one limit and no longer than that client's wait.
///
/// Give a store more places than you have clients. If clients can make up keys, limit them by address as well.
///
/// ```
/// use tower_quota_core::MemoryStore;
///
/// let store = MemoryStore::with_capacity(50_000);
/// assert!(store.is_empty());
/// ```
#[derive(Clone)]
pub struct MemoryStore {
    inner: Arc<Inner>,
}

struct Inner {
    time: Time,
    hasher: SipHasher13,
    capacity: Capacity,
    /// The hash of [`Key::EVERYONE`], whose row has a shard of its own.
    everyone: u64,
    own_capacity: Capacity,
    /// The last one is that of [`Key::EVERYONE`].
    shards: Box<[Aligned]>,
}

/// The clock of a store: usually the machine's, without a virtual call.
enum Time {
    Machine(MonotonicClock),
    Custom(Box<dyn Clock>),
}

impl Time {
    fn now(&self) -> Timestamp {
        match self {
            Self::Machine(clock) => clock.now(),
            Self::Custom(clock) => clock.now().min(LATEST),
        }
    }
}

/// A shard in cache lines of its own.
#[derive(Default)]
#[repr(align(64))]
struct Aligned(Mutex<Shard>);

/// The rows of each shard of a full store: three quarters of the buckets of its table.
///
/// A table of this size never grows while rows are evicted, and it grows to this size within some tens of microseconds.
const ROWS_OF_A_SHARD: usize = 3_072;
/// The rows of each shard of a small store, which has several so that threads seldom collide.
const ROWS_OF_A_SMALL_SHARD: usize = 384;
const MOST_SHARDS_OF_A_SMALL_STORE: usize = 64;
const MOST_SHARDS: usize = 1 << 14;

impl MemoryStore {
    /// Entries remembered by default.
    pub const DEFAULT_CAPACITY: usize = 1_000_000;

    /// Creates a store for up to a million entries, on the machine's monotonic clock.
    #[must_use]
    pub fn new() -> Self {
        Self::with_capacity(Self::DEFAULT_CAPACITY)
    }

    /// Creates a store that remembers at most this many entries (at least 1). Memory is taken as they come.
    #[must_use]
    pub fn with_capacity(entries: usize) -> Self {
        Self::with_time(entries, Time::Machine(MonotonicClock::new()))
    }

    /// Creates a store on a clock of your own, such as one that a test moves by hand.
    ///
    /// Its time ends in the year 2255. Later instants count as the last one.
    #[must_use]
    pub fn with_clock(entries: usize, clock: impl Clock) -> Self {
        Self::with_time(entries, Time::Custom(Box::new(clock)))
    }

    fn with_time(entries: usize, time: Time) -> Self {
        let entries = entries.max(1);
        let shards_if_small = (entries / ROWS_OF_A_SMALL_SHARD).min(MOST_SHARDS_OF_A_SMALL_STORE);
        let shards = (entries / ROWS_OF_A_SHARD)
            .max(shards_if_small)
            .clamp(1, MOST_SHARDS);
        let random = RandomState::new();
        let hasher = SipHasher13::new_with_keys(random.hash_one(0), random.hash_one(1));
        let inner = Inner {
            time,
            everyone: random.hash_one(2),
            hasher,
            capacity: Capacity::new(entries),
            own_capacity: Capacity::new(usize::MAX),
            shards: (0..=shards).map(|_| Aligned::default()).collect(),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Returns the number of entries: at most the capacity, and that of [`Key::EVERYONE`]. Some may be full again.
    #[must_use]
    pub fn len(&self) -> usize {
        self.inner.capacity.entries.load(Relaxed) + self.inner.own_capacity.entries.load(Relaxed)
    }

    /// Returns whether no entry is remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of entries that were evicted before they were full, since the store was made.
    ///
    /// If it grows, the capacity is too small for the traffic, or a client sends made-up keys.
    #[must_use]
    pub fn evicted(&self) -> u64 {
        self.inner.capacity.evicted.load(Relaxed)
    }

    /// Returns statistics of the store.
    ///
    /// Each shard is locked once, for some microseconds for each thousand entries.
    #[must_use]
    pub fn stats(&self) -> MemoryStats {
        let capacity = &self.inner.capacity;
        let mut stats = MemoryStats {
            entries: self.len(),
            capacity: capacity.capacity,
            evicted: self.evicted(),
            evicted_limited: capacity.evicted_limited.load(Relaxed),
            filter_hits: capacity.filter_hits.load(Relaxed),
            definitions: 0,
            bytes: 0,
        };
        for shard in &self.inner.shards {
            let shard = locked(&shard.0);
            stats.definitions += shard.definitions();
            stats.bytes += shard.bytes();
        }
        stats
    }

    /// Checks one charge.
    pub(crate) fn check_one(&self, charge: &Charge<'_>) -> Answer {
        let charges = array::from_ref(charge);
        let mut request = Request::new(&self.inner, charges);
        if request.decide().is_some() {
            return Answer(request.status(0));
        }
        let decision = self.inner.decide_by_model(Operation::Check, charges);
        Answer(decision.statuses()[0])
    }

    /// Returns the present instant on its clock.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.inner.time.now()
    }

    /// Forgets every entry, limited ones too, and gives their memory back. A request that is decided meanwhile may be
    /// forgotten or not.
    pub fn clear(&self) {
        for (number, shard) in self.inner.shards.iter().enumerate() {
            locked(&shard.0).clear(self.inner.capacity_of(number));
        }
    }
}

impl Inner {
    /// Decides, and writes the decision in place, because it is large.
    fn decide(&self, operation: Operation, charges: &[Charge<'_>], decision: &mut Decision) {
        let is_decided = operation == Operation::Check
            && (self.check::<1>(charges, decision)
                || self.check::<2>(charges, decision)
                || self.check::<3>(charges, decision)
                || self.check::<4>(charges, decision)
                || self.check::<5>(charges, decision)
                || self.check::<6>(charges, decision));
        if !is_decided {
            *decision = self.decide_by_model(operation, charges);
        }
    }

    /// Checks charges in their rows if there are `N`. Returns whether it has decided.
    fn check<const N: usize>(&self, charges: &[Charge<'_>], decision: &mut Decision) -> bool {
        let Ok(charges) = charges.try_into() else {
            return false;
        };
        let mut request = Request::<N>::new(self, charges);
        let is_decided = request.decide().is_some();
        if is_decided {
            request.conclude(decision);
        }
        is_decided
    }

    fn hash(&self, key: &Key<'_>) -> u64 {
        if key.is_everyone() {
            return self.everyone;
        }
        // No client chooses a scope, so the scope needs no secret hash.
        let scope = u64::from(key.scope().id()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.hasher.hash(key.as_bytes()) ^ scope
    }

    /// Returns the number of the shard that a key is in.
    fn shard_of(&self, hash: u64) -> usize {
        let everyone = self.shards.len() - 1;
        if hash == self.everyone {
            return everyone;
        }
        // By the middle bits. The table uses the lowest and the highest ones.
        let bits = hash >> 16 & 0xffff_ffff;
        ((bits * everyone as u64) >> 32) as usize
    }

    /// Returns the places for the rows of a shard.
    const fn capacity_of(&self, shard: usize) -> &Capacity {
        if shard + 1 == self.shards.len() {
            &self.own_capacity
        } else {
            &self.capacity
        }
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl Store for MemoryStore {
    type Error = Infallible;
    type Future = Ready<Result<Decision, Infallible>>;

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future {
        let mut decision = Decision::default();
        self.inner.decide(operation, charges, &mut decision);
        ready(Ok(decision))
    }

    fn check_at_once(&self, charges: &[Charge<'_>], decision: &mut Decision) -> bool {
        self.inner.decide(Operation::Check, charges, decision);
        true
    }

    fn identity(&self) -> Option<usize> {
        Some(Arc::as_ptr(&self.inner).addr())
    }

    fn is_shared(&self) -> bool {
        false
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore")
            .field("len", &self.len())
            .field("capacity", &self.inner.capacity.capacity)
            .finish()
    }
}
