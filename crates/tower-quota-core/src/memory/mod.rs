//! The store in this process.

mod bucket;
#[cfg(test)]
mod contention;
mod evict;
mod ghosts;
mod hash;
mod hint;
mod known;
mod newcomer;
mod place;
mod quick;
mod resident;
mod room;
mod row;
mod several;
mod sync;
mod table;
mod whole;

use core::convert::Infallible;
use core::fmt;
use core::future::{Ready, ready};
use std::sync::Arc;

use self::hash::Seed;
use self::hint::Hint;
use self::known::Known;
use self::room::Room;
use self::row::LATEST;
use self::sync::{Mutex, locked};
use self::table::Table;
use crate::charge::{Charge, Operation};
use crate::clock::{Clock, MonotonicClock};
use crate::decision::Decision;
use crate::key::Key;
use crate::store::Store;
use crate::time::Timestamp;

/// Counters in this process: nothing to install, nothing to wait for.
///
/// Clones share the counters. All charges of a request are decided in one atomic step, also when they count different
/// keys. Keys are kept as 64-bit hashes under a seed drawn when the store is made: two keys that share a hash would share
/// their counters. Any two do for 1 in 2^63 of all seeds, so among a million subjects the odds that a newcomer shares one's
/// are 1 in 9 million million, whoever chose the keys, as long as he knows neither the seed nor two that share theirs.
///
/// # Memory
///
/// A subject takes 36 bytes with one limit and 72 with up to four, as the process grows, however long its key. Logs,
/// windows that begin with a request, and more limits are kept apart and take hundreds. All subjects take as much as the
/// one with the most limits; a sliding window of over a million units counts for two.
///
/// At most `capacity` subjects are remembered, one million unless told otherwise; the one that is everybody together
/// takes no place and is never forgotten. No background task runs: each new subject clears away some that are whole
/// again. At the cap, one of a few subjects makes room for a newcomer; who goes is, in this order:
///
/// 1. one that is whole again: nothing is lost;
/// 2. one that was neither refused nor left with nothing the last time, and of those the least used: it gets back what
///    it has taken;
/// 3. where all are limited, the least used of them, and of those who were used alike the one that was charged last. It
///    is remembered by a few bits for as long as it would have taken to be whole, and should it come back, it starts with
///    nothing left.
///
/// So a flood of fresh keys sets no limited client free, and gives something back to a client who is known only where it
/// finds nobody less used among the next few. Whoever is forgotten before he is whole may take his quota's capacity anew:
/// that is the most that a full store admits beyond one with room for all, once for each of [`evicted`](Self::evicted).
///
/// What it costs: some newcomers are taken for a limited client who had to go, and start with nothing left. Of these at
/// most three times as many as there are places are remembered, and as many again while the first fade: newcomers are
/// mistaken 1 in 600 when as many had to go as there are places, and at the worst, when limited clients come in such
/// numbers all the time, 1 in 17. Limited clients beyond that number are not remembered, and may start anew. Give a store
/// more places than you have clients, and limit made-up keys by address as well.
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
    known: Known,
    room: Room,
    /// What stands for everybody together, who has a table and a place for himself.
    everyone: u64,
    own_room: Room,
    /// The last one is everybody's.
    tables: Box<[Shard]>,
    /// Where the tables' rows are.
    hints: Box<[Hint]>,
}

/// Where the store has its time from: mostly the machine, which need not be found out each time.
enum Time {
    Machine(MonotonicClock),
    Told(Box<dyn Clock>),
}

impl Time {
    #[inline]
    fn now(&self) -> Timestamp {
        match self {
            Self::Machine(clock) => clock.now(),
            Self::Told(clock) => clock.now().min(LATEST),
        }
    }
}

/// A table behind a lock, in cache lines of its own.
#[derive(Default)]
#[repr(align(64))]
struct Shard(Mutex<Table>);

/// Subjects for each table of a full store: few enough to be moved in some tens of microseconds when the table grows, and
/// many enough that chance makes few tables fuller than others.
const SUBJECTS_PER_TABLE: usize = if cfg!(loom) { 1 } else { 1_024 };
/// Tables that a store has at most.
const MOST_TABLES: usize = 1 << 14;
/// A small store has up to so many tables, each for a few hundred subjects, so that threads seldom meet.
const TABLES_OF_A_SMALL_STORE: usize = if cfg!(loom) { 1 } else { 64 };
const SUBJECTS_PER_SMALL_TABLE: usize = 256;

impl MemoryStore {
    /// Subjects remembered unless told otherwise.
    pub const DEFAULT_CAPACITY: usize = 1_000_000;

    /// A store for up to a million subjects, on the machine's monotonic clock.
    #[must_use]
    pub fn new() -> Self {
        Self::with_capacity(Self::DEFAULT_CAPACITY)
    }

    /// A store that remembers at most this many subjects (at least 1). Memory is taken as subjects come.
    #[must_use]
    pub fn with_capacity(subjects: usize) -> Self {
        Self::with_time(subjects, Time::Machine(MonotonicClock::new()))
    }

    /// A store on a clock of your own, such as one that a test moves by hand. It ends in the year 2255: later instants
    /// are taken for the last one there is.
    #[must_use]
    pub fn with_clock(subjects: usize, clock: impl Clock) -> Self {
        Self::with_time(subjects, Time::Told(Box::new(clock)))
    }

    fn with_time(subjects: usize, time: Time) -> Self {
        let subjects = subjects.max(1);
        let seed = Seed::random();
        let tables_if_small = (subjects / SUBJECTS_PER_SMALL_TABLE).min(TABLES_OF_A_SMALL_STORE);
        let tables = (subjects / SUBJECTS_PER_TABLE).max(tables_if_small).clamp(1, MOST_TABLES);
        let inner = Inner {
            time,
            everyone: seed.hash(&Key::EVERYONE),
            seed,
            known: Known::new(),
            room: Room::new(subjects, tables),
            own_room: Room::new(1, 1),
            tables: (0..=tables).map(|_| Shard::default()).collect(),
            hints: (0..=tables).map(|_| Hint::default()).collect(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Subjects remembered at present: at most the capacity, and everybody together. Some may be whole again and not yet
    /// cleared away.
    #[must_use]
    pub fn len(&self) -> usize {
        self.inner.room.taken() + self.inner.own_room.taken()
    }

    /// Whether no subject is remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Subjects that were forgotten before they were whole, to make room for others, since the store was made. When
    /// this grows, the capacity is too small for the traffic, or somebody sends made-up keys.
    #[must_use]
    pub fn evicted(&self) -> u64 {
        self.inner.room.evicted()
    }

    /// The present instant on its clock.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.inner.time.now()
    }

    /// Forgets every subject, limited ones too, and gives their memory back. A request that is decided meanwhile may
    /// be forgotten or not.
    pub fn clear(&self) {
        for (number, table) in self.inner.tables.iter().enumerate() {
            let mut table = locked(&table.0);
            table.clear(self.inner.room_of(number));
            self.inner.hints[number].update(&table);
        }
    }
}

impl Inner {
    /// What stands for a key.
    #[inline]
    fn hash(&self, key: &Key<'_>) -> u64 {
        self.seed.hash(key)
    }

    /// The table that a subject is in.
    fn table_of(&self, hash: u64) -> usize {
        let shared = self.tables.len() - 1;
        if hash == self.everyone {
            return shared;
        }
        // By the high bits; a table's own buckets are told by the others.
        (((hash >> 32) * shared as u64) >> 32) as usize
    }

    /// Where a table's subjects take their places.
    const fn room_of(&self, table: usize) -> &Room {
        if table + 1 == self.tables.len() { &self.own_room } else { &self.room }
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

    // So that whoever takes the decision out of the future gets it without it being moved.
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
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("len", &self.len()).field("capacity", &self.inner.room.capacity()).finish()
    }
}
