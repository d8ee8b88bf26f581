//! Which entry is evicted when there is no room.

use super::bucket::ROWS;
use super::entry::Balance;
use super::insert::Scene;
use super::row::Row;
use super::table::Table;
use crate::entry::Entry;

/// Entries considered, at most, to find the one that costs least.
const CANDIDATES: usize = 16;
/// Buckets searched, at most, to find so many.
const REACH: usize = 12;
/// Buckets searched, at most, for full entries.
const SWEPT: usize = 5;

/// Microseconds for which a table rather grows than reclaims the row of a full entry: a minute. Clients who return
/// sooner find their rows.
const KEPT_FULL: u64 = 60_000_000;

impl Table {
    /// Claims a place and gives its row to a new entry, if need be that of another: not of those of the same request.
    pub(super) fn place(&mut self, hash: u64, scene: &Scene<'_>) -> Option<usize> {
        if !scene.capacity.claim() && !self.make_room(hash, scene) {
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
        (0..self.len()).for_each(|bucket| self.reclaim_in(bucket, scene.now.saturating_sub(KEPT_FULL)));
        let freed = before - self.taken();
        scene.capacity.release(freed);
        freed
    }

    /// Frees rows and keeps the place of one claimed: those of the next full entries, or else the candidate that costs
    /// least. Candidates are those near the new entry's row, which takes its place: so none is looked at more often
    /// than others.
    fn make_room(&mut self, hash: u64, scene: &Scene<'_>) -> bool {
        let freed = self.sweep(scene);
        if freed > 0 {
            scene.capacity.release(freed - 1);
            return true;
        }
        let [first, _] = self.homes(hash);
        let (mut least, mut candidates) = (None, 0);
        'search: for bucket in (first..self.len()).chain(0..first).take(REACH) {
            for (row, words) in self.rows_in(bucket).enumerate() {
                if words.is_free() || scene.together.contains(&words.hash()) {
                    continue;
                }
                let cost = self.cost(words);
                if least.is_none_or(|(least, _)| cost < least) {
                    least = Some((cost, bucket * ROWS + row));
                }
                candidates += 1;
                if candidates == CANDIDATES {
                    break 'search;
                }
            }
        }
        least.map(|(_, position)| self.evict(position, scene)).is_some()
    }

    /// Frees the rows of full entries in the next bucket that has any. Returns how many there were.
    fn sweep(&mut self, scene: &Scene<'_>) -> usize {
        let before = self.taken();
        for _ in 0..SWEPT.min(self.len()) {
            let bucket = self.next();
            self.reclaim_in(bucket, scene.now);
            if self.taken() < before {
                break;
            }
        }
        before - self.taken()
    }

    /// Frees the rows of a bucket's entries that are full by an instant.
    fn reclaim_in(&mut self, bucket: usize, instant: u64) {
        let mut full = 0_u8;
        for (row, words) in self.rows_in(bucket).enumerate() {
            // The first condition follows from the last, and costs less.
            if words.at() <= instant && !words.is_free() && self.is_full(words, instant) {
                full |= 1 << row;
            }
        }
        (0..ROWS).filter(|row| full >> row & 1 != 0).for_each(|row| self.vacate(bucket * ROWS + row));
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

    /// Remembers the spent limits of an entry until one unit fits again, and all of its limits for this part of a
    /// unit's time at least, in 1s. Returns whether there were any.
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

    #[inline]
    fn cost(&self, row: Row<'_>) -> Cost {
        let Balance { full_at, is_limited } = self.balance(row);
        Cost { is_limited, uses: row.uses(), last: if is_limited { u64::MAX - row.at() } else { full_at } }
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

/// The cost of evicting an entry: the most important part comes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Cost {
    is_limited: bool,
    /// A key that was used once is most likely made up, and has least to lose.
    uses: u64,
    /// When it is full. Of limited entries, the last one charged goes first: so a flood of keys that are limited by
    /// their first request evicts itself.
    last: u64,
}
