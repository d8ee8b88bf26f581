//! A share of the store's subjects behind one lock, and who has to go when there is no room.

use core::hash::{BuildHasherDefault, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use indexmap::IndexMap;

use super::ghosts::Ghosts;
use super::room::Room;
use crate::subject::Subject;
use crate::time::Timestamp;

/// Subjects looked at, at most, to find one that can make room.
const CANDIDATES: usize = 8;
/// Subjects looked at for every newcomer, to clear away the whole ones.
const SWEPT: usize = 2;

#[derive(Default)]
pub(super) struct Shard(Mutex<Table>);

impl Shard {
    /// One shard for every few thousand subjects, up to 64: a small store has its eviction order over all of them.
    pub(super) fn how_many(capacity: usize) -> usize {
        (capacity / 4096).clamp(1, 64)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Table> {
        // Nothing in a table is left half done by a panic: subjects are put back whole or not at all.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Default)]
pub(super) struct Table {
    residents: IndexMap<u128, Resident, BuildHasherDefault<Folded>>,
    /// Where the next look for a subject to clear away begins.
    hand: usize,
    /// Limited subjects that had to go.
    ghosts: Ghosts,
    /// Everybody together: takes no place and never goes.
    everyone: Resident,
}

/// A subject, and what speaks for keeping it.
#[derive(Default)]
pub(super) struct Resident {
    pub(super) subject: Subject,
    /// Times it was charged, as far as they can be counted here.
    uses: u8,
    /// Until when it was last told to wait.
    refused_until: Timestamp,
}

/// Where a subject that was checked out belongs.
#[derive(Clone, Copy)]
pub(super) enum Place {
    /// It holds one of the store's places.
    Own(u128),
    /// It found no place, and nobody here could make room.
    Homeless(u128),
    /// It is everybody.
    Everyone,
    /// It was not known and nothing will be charged to it.
    Nowhere,
}

impl Table {
    /// Takes out a subject that is known, to be changed and checked in again under the same lock.
    pub(super) fn check_out_known(&mut self, digest: u128, room: &Room) -> Option<(Place, Resident)> {
        if digest == room.everyone() {
            return Some((Place::Everyone, core::mem::take(&mut self.everyone)));
        }
        Some((Place::Own(digest), self.residents.swap_remove(&digest)?))
    }

    /// Whether a subject that is not known may have been limited when it last had to go.
    pub(super) fn remembers(&mut self, digest: u128, now: Timestamp) -> bool {
        self.ghosts.knows(digest, now)
    }

    /// Finds a place for a subject that is not known.
    pub(super) fn make_place(&mut self, digest: u128, now: Timestamp, room: &Room) -> Place {
        self.sweep(now, room);
        if room.claim() || self.make_room(now, room) { Place::Own(digest) } else { Place::Homeless(digest) }
    }

    /// Puts a subject back; one with nothing to remember gives its place up.
    pub(super) fn check_in(&mut self, place: Place, mut resident: Resident, use_of_it: Use, room: &Room) {
        match use_of_it {
            Use::Charged => resident.uses = resident.uses.saturating_add(1),
            Use::RefusedUntil(retry) => resident.refused_until = retry,
            Use::Other => {}
        }
        match place {
            Place::Own(_) if resident.subject.is_empty() => room.release(),
            Place::Own(digest) => drop(self.residents.insert(digest, resident)),
            Place::Homeless(_) if resident.subject.is_empty() => {}
            Place::Homeless(digest) => {
                // It has taken something, and nobody knows what: should it come back, it has taken all.
                let whole_at = resident.subject.whole_at();
                self.ghosts.remember(digest, whole_at, resident.subject.at(), room.share());
            }
            Place::Everyone => self.everyone = resident,
            Place::Nowhere => {}
        }
    }

    /// Whether anything is remembered of everybody together.
    pub(super) fn knows_everyone(&self) -> bool {
        !self.everyone.subject.is_empty()
    }

    /// Forgets everybody.
    pub(super) fn clear(&mut self, room: &Room) {
        let forgotten = core::mem::take(self);
        room.release_all(forgotten.residents.len());
    }

    /// Clears away the next few subjects as far as they are whole.
    fn sweep(&mut self, now: Timestamp, room: &Room) {
        for _ in 0..SWEPT.min(self.residents.len()) {
            let position = self.next();
            if self.residents[position].subject.whole_at() <= now {
                self.residents.swap_remove_index(position);
                room.release();
            }
        }
    }

    /// Frees one place and keeps it claimed: that of the candidate whose going costs least.
    fn make_room(&mut self, now: Timestamp, room: &Room) -> bool {
        let mut victim = None;
        for _ in 0..CANDIDATES.min(self.residents.len()) {
            let position = self.next();
            let cost = self.residents[position].cost_of_going(now);
            if victim.is_none_or(|(least, _)| cost < least) {
                victim = Some((cost, position));
            }
        }
        let Some((cost, position)) = victim else { return false };
        if let Some((digest, gone)) = self.residents.swap_remove_index(position) {
            if cost.0 != Standing::Whole {
                room.count_eviction();
            }
            if cost.0 == Standing::Limited {
                self.ghosts.remember(digest, gone.subject.whole_at(), now, room.share());
            }
        }
        true
    }

    /// Moves the hand on by one.
    fn next(&mut self) -> usize {
        self.hand = if self.hand + 1 < self.residents.len() { self.hand + 1 } else { 0 };
        self.hand
    }
}

/// What a request has done to a subject.
#[derive(Clone, Copy)]
pub(super) enum Use {
    Charged,
    RefusedUntil(Timestamp),
    Other,
}

/// From the one who loses nothing by going to the one who must be remembered.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    Whole,
    Free,
    Limited,
}

impl Resident {
    /// The less, the sooner it goes. Who was charged once is most likely made up, and has least to lose.
    fn cost_of_going(&self, now: Timestamp) -> (Standing, u8, Timestamp) {
        let whole_at = self.subject.whole_at();
        let standing = if whole_at <= now {
            Standing::Whole
        } else if self.refused_until > now || self.subject.is_limited(now) {
            Standing::Limited
        } else {
            Standing::Free
        };
        (standing, self.uses, whole_at)
    }
}

/// Subjects are filed under digests, which are random already: their low bits are the hash.
#[derive(Default)]
pub(super) struct Folded(u64);

impl Hasher for Folded {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u128(&mut self, digest: u128) {
        #[expect(clippy::cast_possible_truncation, reason = "the low half is wanted")]
        let low = digest as u64;
        self.0 = low;
    }
}
