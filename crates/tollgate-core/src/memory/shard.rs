//! A share of the store's subjects behind one lock, and who has to go when there is no room.

use core::hash::{BuildHasherDefault, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use indexmap::IndexMap;
use smallvec::SmallVec;

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
    subjects: IndexMap<u128, Subject, BuildHasherDefault<Folded>>,
    /// Where the next look for a subject to clear away begins.
    hand: usize,
    /// Counts the newcomers that found no room, together.
    overflow: Subject,
}

/// Where a subject that was checked out belongs.
pub(super) enum Place {
    /// It holds one of the store's places.
    Own(u128),
    /// It is the shard's overflow.
    Overflow,
    /// It was not known and nothing will be charged to it.
    Nowhere,
}

impl Place {
    /// Whether two newcomers of one request and shard are the same subject: those that found no room are.
    pub(super) const fn is_shared_with(&self, other: &Self) -> bool {
        matches!((self, other), (Self::Overflow, Self::Overflow))
    }
}

impl Table {
    /// Takes a subject out, to be changed and checked in again under the same lock. A newcomer that will be charged
    /// gets a place of its own if there is one or can be made.
    pub(super) fn check_out(
        &mut self,
        digest: u128,
        now: Timestamp,
        will_charge: bool,
        room: &Room,
    ) -> (Place, Subject) {
        if let Some(known) = self.subjects.swap_remove(&digest) {
            return (Place::Own(digest), known);
        }
        if !will_charge {
            return (Place::Nowhere, Subject::default());
        }
        self.sweep(now, room);
        if room.claim() || self.make_room(now, room) {
            (Place::Own(digest), Subject::default())
        } else {
            (Place::Overflow, core::mem::take(&mut self.overflow))
        }
    }

    /// Puts a subject back; one with nothing to remember gives its place up.
    pub(super) fn check_in(&mut self, place: Place, subject: Subject, room: &Room) {
        match place {
            Place::Own(_) if subject.is_empty() => room.release(),
            Place::Own(digest) => {
                self.subjects.insert(digest, subject);
            }
            Place::Overflow => self.overflow = subject,
            Place::Nowhere => {}
        }
    }

    /// Forgets everybody.
    pub(super) fn clear(&mut self, room: &Room) {
        let forgotten = core::mem::take(self);
        room.release_all(forgotten.subjects.len());
    }

    /// Clears away the next few subjects as far as they are whole.
    fn sweep(&mut self, now: Timestamp, room: &Room) {
        for _ in 0..SWEPT.min(self.subjects.len()) {
            let position = self.next();
            if self.subjects[position].whole_at() <= now {
                self.subjects.swap_remove_index(position);
                room.release();
            }
        }
    }

    /// Frees one place and keeps it claimed: that of the candidate who loses least. Limited ones are never candidates.
    fn make_room(&mut self, now: Timestamp, room: &Room) -> bool {
        let mut candidates: SmallVec<[usize; CANDIDATES]> = SmallVec::new();
        for _ in 0..CANDIDATES.min(self.subjects.len()) {
            candidates.push(self.next());
        }
        let victim = candidates
            .into_iter()
            .filter(|&position| !self.subjects[position].is_limited(now))
            .min_by_key(|&position| self.subjects[position].whole_at());
        let Some(victim) = victim else { return false };
        if let Some((_, evicted)) = self.subjects.swap_remove_index(victim)
            && evicted.whole_at() > now
        {
            room.count_eviction();
        }
        true
    }

    /// Moves the hand on by one.
    fn next(&mut self) -> usize {
        self.hand = if self.hand + 1 < self.subjects.len() { self.hand + 1 } else { 0 };
        self.hand
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
