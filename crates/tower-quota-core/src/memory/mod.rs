//! The store in this process.
//!
//! | file | holds |
//! |---|---|
//! | `check` | plain checks of one key, in its row |
//! | `several` | plain checks of any limits of any keys: in their rows, or on drafts |
//! | `rows` | decisions in the rows of any keys |
//! | `charged` | a charge on a count: whether it fits, and the limit's status |
//! | `draft` | one key's counts while a request is decided |
//! | `model` | every other decision, by the model |
//! | `place` | the keys of a request, and their tables, locked in their order |
//! | `table`, `bucket`, `row` | the layout: rows of an entry each, five to a bucket, buckets in tables |
//! | `cuckoo`, `evict`, `insert` | a row for a new entry, found, made or taken from another |
//! | `filter` | limits that were spent when their entry was evicted |
//! | `entry` | conversion between rows and the model's entries |
//! | `interned`, `recycle` | numbers for limits and their quotas, by table |
//! | `capacity`, `stats` | how many entries there are and may be |
//! | `prefetch`, `fetch` | rows fetched early |
//!
//! Keys are hashed by `key_hash`, and locks are those of `sync`, which other tables of this crate share.

mod bucket;
mod capacity;
mod charged;
mod check;
#[cfg(test)]
mod contention;
mod cuckoo;
mod draft;
mod entry;
mod evict;
mod fetch;
mod filter;
mod insert;
mod interned;
mod model;
mod place;
mod prefetch;
mod recycle;
mod row;
mod rows;
mod several;
mod stats;
mod table;

use core::convert::Infallible;
use core::fmt;
use core::future::{Ready, ready};
use std::sync::Arc;

use self::capacity::Capacity;
use self::prefetch::Prefetch;
use self::row::LATEST;
pub use self::stats::MemoryStats;
use self::table::Table;
use crate::charge::{Charge, Operation};
use crate::clock::{Clock, MonotonicClock};
use crate::decision::Decision;
use crate::key::Key;
use crate::key_hash::Seed;
use crate::store::Store;
use crate::sync::{Mutex, locked};
use crate::time::Timestamp;

/// The store in this process: nothing to install, nothing to wait for.
///
/// Clones share the counters. All charges of a request are decided in one atomic step, also when they count different
/// keys.
///
/// Keys are kept as 64-bit hashes under a random seed, drawn when the store is made. Two keys with the same hash share
/// their counters. Any two keys have the same hash under 1 in 2^63 of all seeds. Among a million entries, a new key
/// shares a hash with probability 1 in 9 million million. This holds for any keys that clients choose without knowing
/// the seed or two keys of the same hash.
///
/// # Memory
///
/// An entry takes 36 bytes with one limit and 72 with up to four, for keys of any length. Entries with sliding logs,
/// windows that begin with a request, buckets whose requests wait or settle, or more limits are kept apart and take
/// hundreds of bytes. All entries of a table take as much as the one with the most limits. A sliding window of over a
/// million units counts as two limits.
///
/// At most `capacity` entries are remembered, one million by default. The entry of [`Key::EVERYONE`] takes no place and
/// is never evicted. No background task runs: entries that are full again are forgotten when their place is needed. In
/// a full store, a new entry evicts one of the next few candidates, in this order:
///
/// 1. Entries that are full again. Nothing is lost.
/// 2. The least used entry that was neither refused nor spent at its last request. Its client starts full.
/// 3. If all are limited, the least used one, and of those used equally often the one charged last. A filter remembers
///    its spent limits until one unit fits again. If its client comes back sooner, these limits are still spent.
///
/// A flood of new keys therefore never releases a limited client. Other entries are evicted only if they are the least
/// used candidate. A client whose entry is evicted before it is full may take the quota's capacity once more. A full
/// store admits at most that much more than one with room for all, once for each of [`evicted`](Self::evicted).
///
/// The filter takes about 21 bytes for each place, in tables that evict limited entries. It remembers all limits up to
/// 1.2 for each place, and 19 in 20 of 2 for each place. Of more, it forgets those whose wait ends first. A new key is
/// mistaken for an evicted one at most 1 time in 16,000, for one limit and no longer than that client's wait.
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
    seed: Seed,
    capacity: Capacity,
    /// The hash of [`Key::EVERYONE`], whose entry has a table and a place of its own.
    everyone: u64,
    own_capacity: Capacity,
    /// The last one is that of [`Key::EVERYONE`].
    tables: Box<[Shard]>,
    /// The addresses of the tables' rows.
    prefetches: Box<[Prefetch]>,
}

/// The clock of a store: usually the machine's, without a virtual call.
enum Time {
    Machine(MonotonicClock),
    Custom(Box<dyn Clock>),
}

impl Time {
    #[inline]
    fn now(&self) -> Timestamp {
        match self {
            Self::Machine(clock) => clock.now(),
            Self::Custom(clock) => clock.now().min(LATEST),
        }
    }
}

/// A table behind a lock, in cache lines of its own.
#[derive(Default)]
#[repr(align(64))]
struct Shard(Mutex<Table>);

/// The entries in each table of a full store.
///
/// They are few enough to be moved in some tens of microseconds when the table grows, and enough that all tables fill
/// about evenly.
const ENTRIES_PER_TABLE: usize = if cfg!(loom) { 1 } else { 4_096 };
/// The most tables of a store.
const MOST_TABLES: usize = 1 << 14;
/// The most tables of a small store. Each has room for a few hundred entries, so that threads seldom collide.
const TABLES_OF_A_SMALL_STORE: usize = if cfg!(loom) { 1 } else { 64 };
const ENTRIES_PER_SMALL_TABLE: usize = 256;

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
        let seed = Seed::random();
        let tables_if_small = (entries / ENTRIES_PER_SMALL_TABLE).min(TABLES_OF_A_SMALL_STORE);
        let tables = (entries / ENTRIES_PER_TABLE)
            .max(tables_if_small)
            .clamp(1, MOST_TABLES);
        let inner = Inner {
            time,
            everyone: seed.hash(&Key::EVERYONE),
            seed,
            capacity: Capacity::new(entries, tables),
            own_capacity: Capacity::new(1, 1),
            tables: (0..=tables).map(|_| Shard::default()).collect(),
            prefetches: (0..=tables).map(|_| Prefetch::default()).collect(),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Returns the number of entries: at most the capacity, and that of [`Key::EVERYONE`]. Some may be full again.
    #[must_use]
    pub fn len(&self) -> usize {
        self.inner.capacity.taken() + self.inner.own_capacity.taken()
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
        self.inner.capacity.evicted()
    }

    /// Returns statistics of the store.
    ///
    /// Each table is locked once, which takes some microseconds for each thousand entries.
    #[must_use]
    pub fn stats(&self) -> MemoryStats {
        let capacity = &self.inner.capacity;
        let mut stats = MemoryStats {
            entries: self.len(),
            capacity: capacity.capacity,
            evicted: capacity.evicted(),
            evicted_limited: capacity.evicted_limited(),
            filter_hits: 0,
            definitions: 0,
            bytes: 0,
        };
        for table in &self.inner.tables {
            let table = locked(&table.0);
            stats.definitions += table.interned.len();
            stats.bytes += table.bytes();
            stats.filter_hits += table.filter_hits();
        }
        stats
    }

    /// Returns the present instant on its clock.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.inner.time.now()
    }

    /// Forgets every entry, limited ones too, and gives their memory back. A request that is decided meanwhile may be
    /// forgotten or not.
    pub fn clear(&self) {
        for (number, table) in self.inner.tables.iter().enumerate() {
            let mut table = locked(&table.0);
            table.clear(self.inner.capacity_of(number));
            self.inner.prefetches[number].update(&table);
        }
    }
}

impl Inner {
    /// Returns the number of the table that an entry is in.
    fn table_of(&self, hash: u64) -> usize {
        let shared = self.tables.len() - 1;
        if hash == self.everyone {
            return shared;
        }
        // By the high bits; a table's own buckets are chosen by the others.
        (((hash >> 32) * shared as u64) >> 32) as usize
    }

    /// Returns the places of a table's entries.
    const fn capacity_of(&self, table: usize) -> &Capacity {
        if table + 1 == self.tables.len() {
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

    // Inlined, so that the decision is taken out of the future without being moved.
    #[inline]
    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future {
        let mut decision = Decision::default();
        self.inner.decide(operation, charges, &mut decision);
        ready(Ok(decision))
    }

    #[inline]
    fn check_at_once(&self, charges: &[Charge<'_>], decision: &mut Decision) -> bool {
        self.inner.decide(Operation::Check, charges, decision);
        true
    }

    fn identity(&self) -> Option<usize> {
        Some(Arc::as_ptr(&self.inner).addr())
    }

    #[inline]
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
