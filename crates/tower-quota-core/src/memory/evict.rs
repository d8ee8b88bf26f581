//! Which entry is evicted when there is no room.

use super::bucket::ROWS;
use super::entry::Balance;
use super::insert::Scene;
use super::row::Row;
use super::table::Table;
use crate::entry::Entry;

/// Entries considered, at most, to find one that can make room.
const CANDIDATES: usize = 20;
/// Buckets searched, at most, to find so many.
const REACH: usize = 12;

/// Microseconds for which a table rather grows than reclaims the row of a full entry: a minute. Clients who return sooner
/// find their rows.
const KEPT_FULL: u64 = 60_000_000;

impl Table {
    /// Claims a place and gives its row to a new entry, if need be that of another: not of those of the same request.
    pub(super) fn place(&mut self, hash: u64, scene: &Scene<'_>) -> Option<usize> {
        if !scene.capacity.claim() && !self.make_room(scene) {
            return None;
        }
        let position = self.settle(hash, scene);
        if position.is_none() {
            scene.capacity.release(1);
        }
        position
    }

    /// Frees the rows of entries that have been full for a while. Returns how many there were.
    pub(super) fn reclaim(&mut self, scene: &Scene<'_>) -> usize {
        let before = self.taken();
        for position in 0..self.rows() {
            let row = self.row(position);
            if !row.is_free() && self.balance(row).full_at.saturating_add(KEPT_FULL) <= scene.now {
                self.vacate(position);
            }
        }
        let freed = before - self.taken();
        scene.capacity.release(freed);
        freed
    }

    /// Frees rows among the next few and keeps the place of one claimed: those of full entries, or else the one that
    /// costs least.
    fn make_room(&mut self, scene: &Scene<'_>) -> bool {
        let (mut least, mut candidates, mut freed) = (None, 0, 0);
        for _ in 0..REACH.min(self.len()) {
            let bucket = self.next();
            for position in bucket * ROWS..(bucket + 1) * ROWS {
                let row = self.row(position);
                if row.is_free() || scene.together.contains(&row.hash()) {
                    continue;
                }
                candidates += 1;
                match self.cost(row, scene.now) {
                    None => {
                        self.vacate(position);
                        freed += 1;
                    }
                    Some(cost) if least.is_none_or(|(least, _)| cost < least) => least = Some((cost, position)),
                    Some(_) => {}
                }
            }
            if candidates >= CANDIDATES {
                break;
            }
        }
        match least {
            _ if freed > 0 => scene.capacity.release(freed - 1),
            Some((_, position)) => self.evict(position, scene),
            None => return false,
        }
        true
    }

    /// Frees the row of an entry and remembers its spent limits in the filter.
    fn evict(&mut self, position: usize, scene: &Scene<'_>) {
        let row = self.row(position);
        let hash = row.hash();
        let is_limited = self.balance(row).is_limited && {
            let entry = self.check_out(position);
            self.remember(hash, &entry, 0, scene.now)
        };
        scene.capacity.count_eviction(is_limited);
        self.vacate(position);
    }

    /// Remembers the spent limits of an entry until one unit fits again, and all of its limits for this part of a unit's
    /// time at least, in 1s. Returns whether there were any.
    pub(super) fn remember(&mut self, hash: u64, entry: &Entry, least_units: u64, now: u64) -> bool {
        let rows = self.rows().max(ROWS);
        let mut is_limited = false;
        for slot in &entry.slots {
            let until = slot.unit_fits_at(entry.at().as_micros()).max(now + least_units * slot.unit_micros());
            if until > now {
                self.rare().filter.remember((hash, slot.limit), until, now, rows);
                is_limited = true;
            }
        }
        is_limited
    }

    /// Returns what it costs to evict an entry: nothing if it is full.
    #[inline]
    fn cost(&self, row: Row<'_>, now: u64) -> Option<Cost> {
        let Balance { full_at, is_limited } = self.balance(row);
        let last = if is_limited { u64::MAX - row.at() } else { full_at };
        (full_at > now).then(|| Cost { is_limited, uses: row.uses(), last })
    }

    /// Moves the hand on by one bucket. Returns the bucket it was at.
    fn next(&mut self) -> usize {
        let bucket = self.hand as usize % self.len().max(1);
        #[expect(clippy::cast_possible_truncation, reason = "no more than the number of buckets")]
        let hand = (bucket + 1) as u32;
        self.hand = hand;
        bucket
    }
}

/// What it costs to evict an entry, by what counts first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Cost {
    is_limited: bool,
    /// A key that was used once is most likely made up, and has least to lose.
    uses: u64,
    /// When it is full. Of limited entries, the last one charged goes first: so a flood of keys that are limited by their
    /// first request evicts itself.
    last: u64,
}
