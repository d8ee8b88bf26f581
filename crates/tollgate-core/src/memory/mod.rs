//! The store in this process.

mod room;
mod shard;

use core::convert::Infallible;
use core::fmt;
use core::future::{Ready, ready};
use std::sync::{Arc, MutexGuard};

use smallvec::SmallVec;

use self::room::Room;
use self::shard::{Place, Shard};
use crate::charge::{Charge, Operation};
use crate::clock::{Clock, MonotonicClock};
use crate::decision::Decision;
use crate::store::Store;
use crate::subject::{Subject, decide};
use crate::time::Timestamp;

/// Counters in this process: nothing to install, nothing to wait for.
///
/// Clones share the counters. All charges of a request are decided in one atomic step, also when they count different
/// keys. Keys are kept as 128-bit hashes under a seed drawn when the store is made.
///
/// # Memory
///
/// At most `capacity` subjects are remembered, one million unless told otherwise. No background task runs: each new
/// subject clears away some that are whole again. At the cap, room is made in this order:
///
/// 1. a subject that is whole again is forgotten: nothing is lost;
/// 2. of the next few subjects, the one that will be whole soonest and is not limited now: it is given back what it
///    had taken, which is the least among them;
/// 3. if those are all limited, nobody is forgotten: the newcomer is counted together with the other newcomers of its
///    shard, until there is room again.
///
/// So a flood of fresh keys never sets a limited client free, and gives something back to a client who is known only
/// where it finds nobody lighter among the next few.
///
/// ```
/// use tollgate_core::MemoryStore;
///
/// let store = MemoryStore::with_capacity(50_000);
/// assert!(store.is_empty());
/// ```
#[derive(Clone)]
pub struct MemoryStore {
    inner: Arc<Inner>,
}

struct Inner {
    clock: Arc<dyn Clock>,
    seed: [u8; 16],
    room: Room,
    shards: Box<[Shard]>,
}

/// The guards a request holds, in the order of their shards.
type Guards<'a> = SmallVec<[(usize, MutexGuard<'a, shard::Table>); 2]>;

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
        Self::with_clock(subjects, MonotonicClock::new())
    }

    /// A store on a clock of your own, such as one that a test moves by hand.
    #[must_use]
    pub fn with_clock(subjects: usize, clock: impl Clock) -> Self {
        let subjects = subjects.max(1);
        let shards = (0..Shard::how_many(subjects)).map(|_| Shard::default()).collect();
        let inner = Inner { clock: Arc::new(clock), seed: room::seed(), room: Room::new(subjects), shards };
        Self { inner: Arc::new(inner) }
    }

    /// Subjects remembered at present. Some may be whole again and not yet cleared away.
    #[must_use]
    pub fn len(&self) -> usize {
        self.inner.room.taken()
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
        self.inner.clock.now()
    }

    /// Forgets every subject, limited ones too, and gives their memory back. A request that is decided meanwhile may
    /// be forgotten or not.
    pub fn clear(&self) {
        for shard in &self.inner.shards {
            shard.lock().clear(&self.inner.room);
        }
    }

    fn decide(&self, operation: Operation, charges: &[Charge<'_>]) -> Decision {
        let inner = &*self.inner;
        let digests: SmallVec<[u128; 4]> = charges.iter().map(|charge| charge.key().digest(&inner.seed)).collect();
        let (unique, subject_of) = grouped(&digests);

        // Locks are taken in the order of the shards, so two requests never wait for each other.
        let mut guards = self.lock(&unique);
        let now = inner.clock.now();
        let will_charge = !matches!(operation, Operation::Reset) && charges.iter().any(|charge| charge.units() > 0);
        let mut checked_out: SmallVec<[(usize, Place, Subject); 2]> = SmallVec::new();
        let position_of: SmallVec<[usize; 2]> = unique
            .iter()
            .map(|&digest| {
                let guard = position(&guards, self.shard_of(digest));
                let (place, subject) = guards[guard].1.check_out(digest, now, will_charge, &inner.room);
                let same =
                    |(other, taken, _): &(usize, Place, Subject)| *other == guard && taken.is_shared_with(&place);
                checked_out.iter().position(same).unwrap_or_else(|| {
                    checked_out.push((guard, place, subject));
                    checked_out.len() - 1
                })
            })
            .collect();

        let mut subjects: SmallVec<[&mut Subject; 2]> = checked_out.iter_mut().map(|(.., subject)| subject).collect();
        let decision = decide(operation, charges, now, &mut subjects, |charge| position_of[subject_of[charge]]);
        drop(subjects);
        for (guard, place, subject) in checked_out {
            guards[guard].1.check_in(place, subject, &inner.room);
        }
        decision
    }

    fn lock(&self, digests: &[u128]) -> Guards<'_> {
        let mut shards: SmallVec<[usize; 2]> = digests.iter().map(|&digest| self.shard_of(digest)).collect();
        shards.sort_unstable();
        shards.dedup();
        shards.into_iter().map(|shard| (shard, self.inner.shards[shard].lock())).collect()
    }

    fn shard_of(&self, digest: u128) -> usize {
        // The high bits choose the shard; a shard's own map uses the low ones.
        let high = (digest >> 96) as usize;
        high % self.inner.shards.len()
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
        ready(Ok(self.decide(operation, charges)))
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("len", &self.len()).field("capacity", &self.inner.room.capacity()).finish()
    }
}

/// The distinct digests, and for each charge the position of its own among them.
fn grouped(digests: &[u128]) -> (SmallVec<[u128; 2]>, SmallVec<[usize; 4]>) {
    let mut unique: SmallVec<[u128; 2]> = SmallVec::new();
    let positions = digests
        .iter()
        .map(|digest| {
            unique.iter().position(|known| known == digest).unwrap_or_else(|| {
                unique.push(*digest);
                unique.len() - 1
            })
        })
        .collect();
    (unique, positions)
}

fn position(guards: &Guards<'_>, shard: usize) -> usize {
    // Every digest's shard was locked; were it not, the last guard would be a wrong shard but never out of bounds.
    guards.iter().position(|(locked, _)| *locked == shard).unwrap_or(0)
}
