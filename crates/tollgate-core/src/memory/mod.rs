//! The store in this process.

mod ghosts;
mod room;
mod shard;

use core::convert::Infallible;
use core::fmt;
use core::future::{Ready, ready};
use std::sync::{Arc, MutexGuard};

use smallvec::SmallVec;

use self::room::Room;
use self::shard::{Place, Resident, Shard, Use};
use crate::charge::{Charge, Operation};
use crate::clock::{Clock, MonotonicClock};
use crate::decide::decide;
use crate::decision::{Decision, Outcome, Standing};
use crate::key::Key;
use crate::store::Store;
use crate::subject::Subject;
use crate::time::Timestamp;

/// Counters in this process: nothing to install, nothing to wait for.
///
/// Clones share the counters. All charges of a request are decided in one atomic step, also when they count different
/// keys. Keys are kept as 128-bit hashes under a seed drawn when the store is made.
///
/// # Memory
///
/// At most `capacity` subjects are remembered, one million unless told otherwise; the one that is everybody together
/// takes no place and is never forgotten. No background task runs: each new subject clears away some that are whole
/// again. At the cap, one of the next few subjects makes room for a newcomer; who goes is, in this order:
///
/// 1. one that is whole again: nothing is lost;
/// 2. one that is not limited, and of those the least used: it gets back what it has taken;
/// 3. where all are limited, the least used of them. It is remembered by a few bits for as long as it would have
///    taken to be whole, and should it come back, it starts with nothing left.
///
/// So a flood of fresh keys sets no limited client free, gives something back to a client who is known only where it
/// finds nobody less used among the next few. What it costs: at the worst, when more limited clients had to go than the
/// store has places, some newcomers are taken for one of them and start with nothing left (1 in 200 at once the places,
/// 1 in 11 at three times, and at twenty times 45 in 100 of all requests were refused so in a measured flood). Give a
/// store more places than you have clients, and limit made-up keys by address as well.
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

/// A subject of a request, out of its table.
struct Guest {
    digest: u128,
    /// Which of the request's guards holds its table.
    guard: usize,
    place: Place,
    resident: Resident,
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
        let seed = room::seed();
        let shards: Box<[Shard]> = (0..Shard::how_many(subjects)).map(|_| Shard::default()).collect();
        let room = Room::new(subjects, shards.len(), Key::EVERYONE.digest(&seed));
        Self { inner: Arc::new(Inner { clock: Arc::new(clock), seed, room, shards }) }
    }

    /// Subjects remembered at present: at most the capacity, and everybody together. Some may be whole again and not yet cleared away.
    #[must_use]
    pub fn len(&self) -> usize {
        let everyone = self.shard_of(self.inner.room.everyone());
        self.inner.room.taken() + usize::from(self.inner.shards[everyone].lock().knows_everyone())
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
        let mut guests: SmallVec<[Guest; 2]> = unique.iter().map(|&digest| self.guest(digest, &guards)).collect();
        // Those who are known come out first: nobody who is part of this request makes room for another.
        for guest in &mut guests {
            if let Some(known) = guards[guest.guard].1.check_out_known(guest.digest, &inner.room) {
                (guest.place, guest.resident) = known;
            }
        }
        let will_charge = !matches!(operation, Operation::Reset) && charges.iter().any(|charge| charge.units() > 0);
        for (number, guest) in guests.iter_mut().enumerate().filter(|(_, guest)| matches!(guest.place, Place::Nowhere))
        {
            let table = &mut guards[guest.guard].1;
            if table.remembers(guest.digest, now) {
                let own = charges.iter().zip(&subject_of).filter(|(_, subject)| **subject == number);
                for (charge, _) in own {
                    let all = [charge.cost(charge.quota().capacity())];
                    guest.resident.subject.decide(Operation::Charge, &all, now);
                }
            }
            if will_charge {
                guest.place = table.make_place(guest.digest, now, &inner.room);
            }
        }

        let mut subjects: SmallVec<[&mut Subject; 2]> =
            guests.iter_mut().map(|guest| &mut guest.resident.subject).collect();
        let decision = decide(operation, charges, now, &mut subjects, |charge| subject_of[charge]);
        drop(subjects);
        for (number, guest) in guests.into_iter().enumerate() {
            let own = decision.standings().iter().zip(&subject_of).filter(|(_, subject)| **subject == number);
            let use_of_it = use_of(&decision, own.map(|(standing, _)| standing));
            guards[guest.guard].1.check_in(guest.place, guest.resident, use_of_it, &inner.room);
        }
        decision
    }

    fn guest(&self, digest: u128, guards: &Guards<'_>) -> Guest {
        let guard = position(guards, self.shard_of(digest));
        Guest { digest, guard, place: Place::Nowhere, resident: Resident::default() }
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

/// What a decision means for one of its subjects.
fn use_of<'a>(decision: &Decision, own: impl Iterator<Item = &'a Standing>) -> Use {
    if decision.is_allowed() {
        return Use::Charged;
    }
    let longest = own.filter_map(|standing| match standing.outcome {
        Outcome::Refuse(retry) if !standing.is_shadow => Some(retry),
        _ => None,
    });
    longest.max().map_or(Use::Other, |retry| Use::RefusedUntil(decision.at() + retry))
}

fn position(guards: &Guards<'_>, shard: usize) -> usize {
    // Every digest's shard was locked; were it not, the last guard would be a wrong shard but never out of bounds.
    guards.iter().position(|(locked, _)| *locked == shard).unwrap_or(0)
}
