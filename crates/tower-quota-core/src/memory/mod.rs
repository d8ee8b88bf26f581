//! The in-process store.
//!
//! ```text
//! MemoryStore ── shards      each behind a lock, the last one for Key::EVERYONE alone
//!   Shard ── rows            a hash table with 32 bytes for each row
//!         ── everyone        the row of Key::EVERYONE
//!         ── definitions     limits and their quotas, shared by the rows
//!         ── evicted         spent limits (filter) and uses (sketch) of evicted rows
//!   Row   ── hash            stands for the key
//!         ── touched         instant of the last change, a mark for a refusal, number of uses
//!         ── content         one count, several counts, or an entry of the model
//! ```
//!
//! A request locks the shards of all its keys, in ascending order. Then the store decides the request in one of two ways:
//!
//! 1. `rows` decides plain charges of buckets and windows on the counts of the rows.
//! 2. `model` decides everything else. `model` takes entries out of their rows and calls [`decide`](crate::decide()).
//!
//! The differential test compares the two ways. A new algorithm is kept as an entry of the model, or as a count if
//! `Counting::packed` fits the state into a word.

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
use self::rows::Judged;
use self::shard::{EVERYONE, Shard};
pub use self::stats::MemoryStats;
use crate::answer::Answer;
use crate::charge::{Charge, Operation};
use crate::clock::{Clock, MonotonicClock};
use crate::decision::Decision;
use crate::key::Key;
use crate::store::Store;
use crate::sync::Lock;
use crate::time::Timestamp;

/// A store in this process.
///
/// Clones share the counters. The store decides all charges of a request in one atomic step, even
/// of different keys. `MemoryStore` runs no background task.
///
/// # Memory
///
/// The store keeps at most `capacity` entries, one million by default. [`Key::EVERYONE`] has an entry of its own, which
/// takes no place and is never evicted. An entry with one limit takes 44 to 90 bytes, and an entry with up to three limits
/// 72 bytes more, for keys of any length. In a store for 1,000 entries, the figures are 68 and 132 bytes. Entries with logs,
/// holds, windows that start with a request, and buckets that queue or settle requests take hundreds of bytes. A log takes
/// one more place of the capacity for each kilobyte.
///
/// For each new entry, a full store removes the first that applies:
///
/// 1. An entry that is full again. Your clients lose no count.
/// 2. The least used of the next few entries, except for limited clients. The evicted client starts full. The store
///    remembers how often the client came.
/// 3. The least used limited entry. The store remembers the spent limits until one unit fits again, and refuses a client
///    who returns before.
///
/// A flood of new keys therefore releases a limited client only if the store has to remember too many spent limits. Each
/// eviction may give the client the capacity of the quota once more, and a debt beyond the capacity is lost.
///
/// The memory of evicted entries takes about 40 bytes for each place, and holds 1.2 spent limits for each place without a
/// loss. The store mistakes at most 1 new key in 8,000 for an evicted key, for one limit and for the wait of the evicted
/// client.
///
/// Give a store more places than you have clients. With a fifth too few, clients get twice their limit, because the store
/// evicts each client hundreds of times. For example, clients send a request a second to 1,000 places, with 10 units a
/// minute:
///
/// | clients | admitted a client and minute |
/// |---|---|
/// | 1,000 | 10 |
/// | 1,200 | 22 to 24 |
/// | 2,000 | 43 to 49 |
///
/// If clients can make up keys, also limit addresses.
///
/// # Security
///
/// The store keeps 64-bit hashes of keys (SipHash-1-3) under a random seed, so clients cannot choose keys with equal hashes.
/// Among a million entries, a new key has the hash of another key with a probability of 1 in 18 million million.
///
/// ```
/// use tower_quota_core::MemoryStore;
///
/// let store = MemoryStore::with_capacity(50_000);
/// assert!(store.is_empty());
/// ```
#[derive(Clone)]
pub struct MemoryStore {
    inner: Arc<MemoryInner>,
}

struct MemoryInner {
    time: Time,
    hasher: SipHasher13,
    capacity: Capacity,
    own_capacity: Capacity,
    /// The last shard has the row of [`Key::EVERYONE`].
    shards: Box<[Aligned]>,
}

/// The clock of a store. The machine's clock needs no virtual call.
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

/// A shard, aligned so that no two share a cache line.
#[derive(Default)]
#[repr(align(64))]
struct Aligned(Lock<Shard>);

/// The number of rows in a shard of a full store. The rows fill three quarters of the table, so
/// that the table does not grow during evictions.
const ROWS_OF_A_SHARD: usize = 3_072;
/// The number of rows in a shard of a small store, which also has several shards, so that threads
/// seldom collide.
const ROWS_OF_A_SMALL_SHARD: usize = 384;
const MOST_SHARDS_OF_A_SMALL_STORE: usize = 64;
const MOST_SHARDS: usize = 1 << 14;

impl MemoryStore {
    /// The default number of entries.
    pub const DEFAULT_CAPACITY: usize = 1_000_000;

    /// Creates a store for up to a million entries, on the machine's monotonic clock.
    #[must_use]
    pub fn new() -> Self {
        Self::with_capacity(Self::DEFAULT_CAPACITY)
    }

    /// Creates a store for at most `entries` entries, and at least one.
    ///
    /// Choose at least the number of keys of a request. The store counts a key without a place as spent.
    /// The store allocates memory when entries come.
    #[must_use]
    pub fn with_capacity(entries: usize) -> Self {
        Self::with_time(entries, Time::Machine(MonotonicClock::new()))
    }

    /// Creates a store on your own clock, for example a clock that a test moves by hand.
    ///
    /// The time of a store ends in the year 2255. Later instants count as the end.
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
        let inner = MemoryInner {
            time,
            hasher,
            capacity: Capacity::new(entries, shards),
            // The shard of everyone has a single row, which is never evicted.
            own_capacity: Capacity::new(usize::MAX, usize::MAX),
            shards: (0..=shards).map(|_| Aligned::default()).collect(),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Returns the number of entries, including entries that are full again and [`Key::EVERYONE`].
    #[must_use]
    pub fn len(&self) -> usize {
        self.inner.capacity.entries.load(Relaxed) + self.inner.own_capacity.entries.load(Relaxed)
    }

    /// Returns whether the store has no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of entries that the store has evicted before they were full.
    ///
    /// If the number grows, the capacity is too small for your traffic, or a client sends made-up keys.
    #[must_use]
    pub fn evicted(&self) -> u64 {
        self.inner.capacity.evicted.load(Relaxed)
    }

    /// Returns statistics of the store.
    ///
    /// The call locks each shard once, for some microseconds for each thousand entries.
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
            let shard = shard.0.lock();
            stats.definitions += shard.definitions();
            stats.bytes += shard.bytes();
        }
        stats
    }

    pub(crate) fn check_one(&self, charge: &Charge<'_>) -> Answer {
        let charges = array::from_ref(charge);
        let mut judged = [Judged::default()];
        if let Some(verdict) = self.inner.check_rows(charges, &mut judged) {
            return Answer(judged[0].status(charge, verdict));
        }
        let decision = self.inner.decide_by_model(Operation::Check, charges);
        Answer(decision.statuses()[0])
    }

    /// Returns the present instant on the clock of the store.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.inner.time.now()
    }

    /// Removes all entries, including limited clients, and frees the memory.
    ///
    /// A request that is decided at the same time is removed or not.
    pub fn clear(&self) {
        for (number, shard) in self.inner.shards.iter().enumerate() {
            shard.0.lock().clear(self.inner.capacity_of(number));
        }
    }
}

impl MemoryInner {
    /// Decides an operation. Writes the decision in place, because a decision is large.
    fn decide(&self, operation: Operation, charges: &[Charge<'_>], decision: &mut Decision) {
        // The number of charges is a constant in the usual arms, which unrolls the loops.
        let is_decided = operation == Operation::Check
            && match charges.len() {
                1 => self.check::<1>(charges, decision),
                2 => self.check::<2>(charges, decision),
                3 => self.check::<3>(charges, decision),
                _ => self.check::<6>(charges, decision),
            };
        if !is_decided {
            *decision = self.decide_by_model(operation, charges);
        }
    }

    /// Checks up to `MOST` charges in their rows. Returns whether the rows could decide.
    fn check<const MOST: usize>(&self, charges: &[Charge<'_>], decision: &mut Decision) -> bool {
        let mut judged = [Judged::default(); MOST];
        let Some(judged) = judged.get_mut(..charges.len()) else {
            return false;
        };
        let Some(verdict) = self.check_rows(charges, judged) else {
            return false;
        };
        let statuses = charges.iter().zip(judged);
        let statuses = statuses.map(|(charge, judged)| judged.status(charge, verdict));
        let at = Timestamp::from_micros(verdict.now);
        decision.replace(verdict.is_admitted, at, statuses);
        true
    }

    fn hash(&self, key: &Key<'_>) -> u64 {
        if key.is_everyone() {
            return EVERYONE;
        }
        // No client chooses a scope, so the scope needs no secret hash.
        let scope = u64::from(key.scope().id()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let hash = self.hasher.hash(key.as_bytes()) ^ scope;
        hash.max(EVERYONE)
    }

    fn shard_of(&self, hash: u64) -> usize {
        let everyone = self.shards.len() - 1;
        if hash == EVERYONE {
            return everyone;
        }
        // Choose the shard by the middle bits, because the table uses the lowest and the highest
        // bits.
        let bits = hash >> 16 & 0xffff_ffff;
        ((bits * everyone as u64) >> 32) as usize
    }

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
