//! Who has to go when there is no room.

use std::borrow::Cow;

use super::bucket::{Bucket, ROWS};
use super::known::Known;
use super::resident::Last;
use super::room::Room;
use super::row::Row;
use super::table::{Buckets, Table};
use crate::time::Timestamp;

/// Subjects looked at, at most, to find one that can make room.
const CANDIDATES: usize = 16;
/// Buckets looked at, at most, to find so many.
const REACH: usize = 12;

impl Table {
    /// Claims a place and gives its row to a newcomer, if need be that of somebody else: not of those that are named.
    pub(super) fn place(
        &mut self,
        hash: u64,
        now: Timestamp,
        (room, known): (&Room, &Known),
        together: &[u64],
    ) -> Option<usize> {
        self.sweep(now, (room, known));
        if !room.claim() && !self.make_room(hash, now, (room, known), together) {
            return None;
        }
        let position = self.settle(hash, room);
        if position.is_none() {
            room.release();
        }
        position
    }

    /// Whether a subject that is not known may have been limited when it last had to go.
    pub(super) fn remembers(&mut self, hash: u64, now: Timestamp) -> bool {
        self.ghosts().is_some_and(|ghosts| ghosts.knows(hash, now))
    }

    /// Remembers a limited subject that has no place.
    pub(super) fn remember(&mut self, hash: u64, whole_at: Timestamp, now: Timestamp, room: &Room) {
        self.rare().ghosts.remember(hash, whole_at, now, room.share());
    }

    /// Clears away the next few subjects as far as they are whole.
    fn sweep(&mut self, now: Timestamp, (room, known): (&Room, &Known)) {
        for _ in 0..ROWS.min(self.rows()) {
            let position = self.next();
            let row = self.row(position);
            if !row.is_free() && self.last(row, known).whole_at <= now.as_micros() {
                self.forget(position, room);
            }
        }
    }

    /// Frees one row and keeps its place claimed: that of the candidate whose going costs least. Candidates are those
    /// next to the newcomer, that is, others each time.
    fn make_room(&mut self, newcomer: u64, now: Timestamp, (room, known): (&Room, &Known), together: &[u64]) -> bool {
        let [first, _] = self.homes(newcomer);
        let victim = match &self.buckets {
            Buckets::Narrow(buckets) => self.least(buckets, first, now, known, together),
            Buckets::Wide(buckets) => self.least(buckets, first, now, known, together),
        };
        let Some((cost, position)) = victim else { return false };
        if cost.standing != Standing::Whole {
            room.count_eviction();
        }
        self.haunt(position, now, (room, known));
        self.vacate(position);
        true
    }

    /// Remembers the subject of a row that has to go, if it is limited.
    fn haunt(&mut self, position: usize, now: Timestamp, (room, known): (&Room, &Known)) {
        let row = self.row(position);
        let (hash, was_refused) = (row.hash(), row.was_refused());
        if !self.last(row, known).was_limited {
            return;
        }
        let subject = self.elsewhere(row).map_or_else(|| Cow::Owned(row.subject(known)), Cow::Borrowed);
        let whole_at = subject.full_at();
        if whole_at > now && (was_refused || subject.is_limited(now)) {
            self.remember(hash, whole_at, now, room);
        }
    }

    /// Of the subjects from a bucket on, the one whose going costs least.
    fn least<const W: usize>(
        &self,
        buckets: &[Bucket<W>],
        first: usize,
        now: Timestamp,
        known: &Known,
        together: &[u64],
    ) -> Option<(Cost, usize)> {
        let (mut least, mut candidates) = (None, 0);
        for number in (first..buckets.len()).chain(0..first).take(REACH) {
            for (row, words) in buckets[number].rows().iter().enumerate() {
                let row_of = Row(words);
                if row_of.is_free() || together.contains(&row_of.hash()) {
                    continue;
                }
                let cost = self.cost_of_going(row_of, now, known);
                if least.is_none_or(|(least, _)| cost < least) {
                    least = Some((cost, number * ROWS + row));
                }
                candidates += 1;
                if candidates == CANDIDATES {
                    return least;
                }
            }
        }
        least
    }

    /// The less, the sooner it goes. Who was charged once is most likely made up, and has least to lose.
    #[inline]
    fn cost_of_going(&self, row: Row<'_>, now: Timestamp, known: &Known) -> Cost {
        let Last { whole_at, was_limited } = self.last(row, known);
        let (standing, last) = match was_limited {
            _ if whole_at <= now.as_micros() => (Standing::Whole, 0),
            true => (Standing::Limited, u64::MAX - row.at()),
            false => (Standing::Free, whole_at),
        };
        Cost { standing, uses: row.uses(), last }
    }

    /// Moves the hand on by one.
    fn next(&mut self) -> usize {
        let next = self.hand as usize + 1;
        #[expect(clippy::cast_possible_truncation, reason = "less than five times the number of buckets")]
        let hand = if next < self.rows() { next } else { 0 } as u32;
        self.hand = hand;
        hand as usize
    }
}

/// What it costs that a subject goes, by what counts first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Cost {
    standing: Standing,
    uses: u64,
    /// Whoever is whole soonest; of the limited, whoever was charged last: so a flood of keys that are limited by their
    /// first request drives itself out.
    last: u64,
}

/// From the one who loses nothing by going to the one who must be remembered.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    Whole,
    Free,
    Limited,
}
