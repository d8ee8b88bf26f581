//! Eviction: the choice of an entry that is forgotten when there is no room.
//!
//! 1. Full entries near the hand are reclaimed: nothing is lost.
//! 2. If there are none, up to 16 candidates near the new entry's row are compared, and the cheapest one is evicted.
//! 3. The spent limits of the evicted entry are remembered in the evicted filter.

use super::bucket::ROWS;
use super::entry::Balance;
use super::insert::WriteContext;
use super::row::Row;
use super::table::Table;
use crate::entry::Entry;

/// The most entries that are considered to find the one that costs least.
const CANDIDATES: usize = 16;
/// The most buckets that are searched for candidates.
const MOST_SEARCHED: usize = 12;
/// The most buckets that are searched for full entries.
const MOST_SWEPT: usize = 5;

/// Microseconds for which a full entry keeps its row although the table could reclaim it: a minute.
///
/// Clients who return sooner find their rows.
const KEPT_FULL: u64 = 60_000_000;

impl Table {
    /// Claims a place and gives a row to a new entry. Evicts another entry if there is no room.
    ///
    /// Entries of the same request are never evicted.
    pub(super) fn place(&mut self, hash: u64, context: &WriteContext<'_>) -> Option<usize> {
        if !context.capacity.claim() && !self.make_room(hash, context) {
            return None;
        }
        let position = self.give_row(hash, context);
        if position.is_none() {
            context.capacity.release(1);
        }
        position
    }

    /// Frees the rows of entries that have been full for a while. Returns how many there were.
    pub(super) fn reclaim(&mut self, context: &WriteContext<'_>) -> usize {
        let before = self.taken();
        (0..self.len())
            .for_each(|bucket| self.reclaim_in(bucket, context.now.saturating_sub(KEPT_FULL)));
        let freed = before - self.taken();
        context.capacity.release(freed);
        freed
    }

    /// Frees the rows of the next full entries, or of the candidate that costs least. Keeps the place of one claimed.
    ///
    /// Candidates are near the new entry's row, so that none is considered more often than others.
    fn make_room(&mut self, hash: u64, context: &WriteContext<'_>) -> bool {
        let freed = self.sweep(context);
        if freed > 0 {
            context.capacity.release(freed - 1);
            return true;
        }
        let [first, _] = self.homes(hash);
        let (mut least, mut candidates) = (None, 0);
        'search: for bucket in (first..self.len()).chain(0..first).take(MOST_SEARCHED) {
            for (row, words) in self.rows_in(bucket).enumerate() {
                if words.is_free()
                    || context
                        .together
                        .iter()
                        .any(|place| place.hash == words.hash())
                {
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
        least
            .map(|(_, position)| self.evict(position, context))
            .is_some()
    }

    /// Frees the rows of full entries in the next bucket that has any. Returns how many there were.
    fn sweep(&mut self, context: &WriteContext<'_>) -> usize {
        let before = self.taken();
        for _ in 0..MOST_SWEPT.min(self.len()) {
            let bucket = self.next();
            self.reclaim_in(bucket, context.now);
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
        (0..ROWS)
            .filter(|row| full >> row & 1 != 0)
            .for_each(|row| self.vacate(bucket * ROWS + row));
    }

    /// Frees the row of an entry and remembers its spent limits in the filter.
    fn evict(&mut self, position: usize, context: &WriteContext<'_>) {
        let row = self.row(position);
        let hash = row.hash();
        let is_limited = self.balance(row).is_limited && {
            let entry = self.check_out(position);
            self.remember(hash, &entry, 0, context.now)
        };
        context.capacity.count_eviction(is_limited);
        self.vacate(position);
    }

    /// Remembers the spent limits of an entry in the evicted filter until one unit fits again.
    ///
    /// All of its limits are remembered for at least the time of `least_units` units. Returns whether any was
    /// remembered.
    pub(super) fn remember(
        &mut self,
        hash: u64,
        entry: &Entry,
        least_units: u64,
        now: u64,
    ) -> bool {
        let rows = self.rows().max(ROWS);
        let mut is_limited = false;
        for slot in &entry.slots {
            let until = slot
                .unit_fits_at(entry.at().as_micros())
                .max(now + least_units * slot.unit_micros());
            if until > now {
                self.rare()
                    .filter
                    .remember((hash, slot.limit), until, now, rows);
                is_limited = true;
            }
        }
        is_limited
    }

    #[inline]
    fn cost(&self, row: Row<'_>) -> Cost {
        let Balance {
            full_at,
            is_limited,
        } = self.balance(row);
        Cost {
            is_limited,
            uses: row.uses(),
            last: if is_limited {
                u64::MAX - row.at()
            } else {
                full_at
            },
        }
    }

    /// Moves the hand of the sweep on by one bucket. Returns the bucket it was at.
    fn next(&mut self) -> usize {
        let bucket = self.hand as usize % self.len().max(1);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "no more than the number of buckets"
        )]
        let hand = (bucket + 1) as u32;
        self.hand = hand;
        bucket
    }
}

/// The cost of evicting an entry, with the most important part first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Cost {
    is_limited: bool,
    /// A key that was used once is most likely made up, and has least to lose.
    uses: u64,
    /// The instant at which it is full. Of limited entries, the last one charged is evicted first: a flood of keys that
    /// are limited by their first request evicts its own entries.
    last: u64,
}
