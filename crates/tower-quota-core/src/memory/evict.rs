//! Chooses the row that a full store forgets, the first that exists of:
//!
//! 1. a full row among the next few buckets of a sweep,
//! 2. the candidate with the lowest cost. The shard remembers spent limits and uses.
//!
//! The shard halves the uses from time to time, so that clients who were busy long ago can be
//! evicted.

use super::capacity::Capacity;
use super::row::Row;
use super::shard::{Context, Shard};
use crate::entry::Slot;

const SWEPT: usize = 64;
const CANDIDATES: usize = 32;
const EVICTIONS_PER_HALVING: usize = 2;

/// The cost of evicting a row, the most important part first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Cost {
    is_limited: bool,
    /// The number of uses. A key with a single use is probably made up.
    uses: u8,
    /// The instant at which the row is full. Limited rows count down from their last charge instead. A flood of keys that
    /// are limited by their first request therefore evicts its own rows.
    last: u64,
}

impl Cost {
    fn of(row: &Row) -> Self {
        let is_limited = row.is_limited();
        Self {
            is_limited,
            uses: row.uses(),
            last: if is_limited {
                u64::MAX - row.at()
            } else {
                row.full_at()
            },
        }
    }
}

impl Shard {
    /// Drops a full row, or evicts the candidate with the lowest cost. Returns `false` if the request holds all rows.
    ///
    /// The candidates are near the bucket of the new row. Otherwise some parts of the table would run out of new keys, and
    /// busy clients there would be evicted for new keys elsewhere.
    pub(super) fn make_room(&mut self, hash: u64, context: &Context<'_>) -> bool {
        let buckets = self.rows.num_buckets();
        for _ in 0..SWEPT.min(buckets) {
            self.hand = (self.hand + 1) % buckets;
            if let Some(row) = self.rows.get_bucket(self.hand)
                && row.full_at() <= context.now
            {
                let (places, hash) = (row.places(), row.hash());
                context.capacity.forget(places);
                self.take(hash);
                return true;
            }
        }
        let is_own = |row: &Row| {
            let mut own = context.together.iter();
            own.any(|place| place.hash == row.hash())
        };
        let mut least: Option<(Cost, u64)> = None;
        let mut candidates = 0;
        for step in 0..buckets {
            // Begin at the bucket where the table begins to look for a free one.
            let bucket = ((hash & 0xffff_ffff) as usize + step) % buckets;
            let Some(row) = self.rows.get_bucket(bucket).filter(|row| !is_own(row)) else {
                continue;
            };
            let cost = Cost::of(row);
            if least.is_none_or(|(least, _)| cost < least) {
                least = Some((cost, row.hash()));
            }
            candidates += 1;
            if candidates == CANDIDATES {
                break;
            }
        }
        let Some(row) = least.and_then(|(_, hash)| self.take(hash)) else {
            return false;
        };
        self.evict(row, context.now, context.capacity);
        true
    }

    fn evict(&mut self, row: Row, now: u64, capacity: &Capacity) {
        capacity.forget(row.places());
        let rows = capacity.shard_rows;
        let evicted = self.evicted.get_or_insert_default();
        evicted.sketch.remember(row.hash(), row.uses(), rows);
        let is_limited = row.is_limited() && self.remember(row, 0, now, capacity);
        capacity.count_eviction(is_limited);
        let evicted = self.evicted.get_or_insert_default();
        evicted.evictions += 1;
        if evicted.evictions < EVICTIONS_PER_HALVING * rows {
            return;
        }
        evicted.evictions = 0;
        for row in &mut self.rows {
            row.halve_uses();
        }
    }

    /// Remembers the spent limits of a row until one unit fits again, at least for the time of `least_units` units.
    ///
    /// Returns whether a limit was spent.
    pub(super) fn remember(
        &mut self,
        row: Row,
        least_units: u64,
        now: u64,
        capacity: &Capacity,
    ) -> bool {
        let hash = row.hash();
        let at = row.at();
        let mut is_limited = false;
        for slot in &row.into_entry().slots {
            let until = slot
                .unit_fits_at(at)
                .max(now + least_units * slot.unit_micros());
            if until > now {
                let evicted = self.evicted.get_or_insert_default();
                let limit = (hash, slot.limit);
                evicted
                    .filter
                    .remember(limit, until, now, capacity.shard_rows);
                is_limited = true;
            }
        }
        is_limited
    }
}

impl Slot {
    const fn unit_micros(&self) -> u64 {
        match self.quota.refill() {
            0 => self.quota.period_micros(),
            refill => self.quota.grain().div_ceil(refill),
        }
    }
}
