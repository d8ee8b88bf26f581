//! Shards: each holds a share of the store's rows behind a lock of its own.

use core::mem;

use hashbrown::HashTable;

use super::capacity::Capacity;
use super::definition::Definitions;
use super::evicted::Evicted;
use super::place::Place;
use super::row::{Content, Count, Counts, Mark, Row};
use crate::charge::Counter;
use crate::entry::Entry;

/// Microseconds for which a full row stays although the shard could reclaim it, so that a client who returns finds it.
const KEPT_FULL: u64 = 60_000_000;

#[derive(Default)]
pub(super) struct Shard {
    pub(super) rows: HashTable<Row>,
    definitions: Definitions,
    /// The bucket at which the next search for a row to evict begins.
    pub(super) hand: usize,
    /// What is remembered of evicted rows. Most shards never need it.
    pub(super) evicted: Option<Box<Evicted>>,
}

/// The parts of a request that a write needs.
pub(super) struct Context<'a> {
    pub(super) now: u64,
    pub(super) capacity: &'a Capacity,
    /// The keys of the request. None of them is evicted for another.
    pub(super) together: &'a [Place],
}

impl Shard {
    pub(super) fn row_mut(&mut self, hash: u64) -> Option<&mut Row> {
        self.rows.find_mut(hash, |row| row.hash == hash)
    }

    /// Returns whether a limit of a key was spent when the row of the key was evicted.
    pub(super) fn is_spent(&self, limit: (u64, u32), now: u64) -> bool {
        let evicted = self.evicted.as_ref();
        evicted.is_some_and(|evicted| evicted.filter.until(limit, now).is_some())
    }

    /// Takes a row out of the table. Its places stay claimed.
    pub(super) fn take(&mut self, hash: u64) -> Option<Row> {
        let found = self.rows.find_entry(hash, |row| row.hash == hash);
        found.ok().map(|row| row.remove().0)
    }

    /// Puts back a row that was taken out and had claimed this many places.
    pub(super) fn put_back(&mut self, row: Row, claimed: usize, context: &Context<'_>) {
        let wanted = row.places();
        if wanted <= claimed {
            context.capacity.release(claimed - wanted);
        } else if !self.claim(wanted - claimed, context) {
            // The shard has no other row. A single log may exceed the capacity.
            context.capacity.claim_beyond(wanted - claimed);
        }
        self.rows.insert_unique(row.hash, row, |row| row.hash);
    }

    /// Removes a row that was taken out and had claimed this many places.
    pub(super) fn forget(claimed: usize, capacity: &Capacity) {
        // In this order there are never more entries than places.
        capacity.count_entries(-1);
        capacity.release(claimed);
    }

    /// Adds the row of a new key.
    ///
    /// If there is no place for it, its limits are remembered as spent for the time of one unit each.
    pub(super) fn insert(
        &mut self,
        hash: u64,
        content: Content,
        mark: Mark,
        context: &Context<'_>,
    ) {
        let uses = self
            .evicted
            .as_ref()
            .map_or(0, |evicted| evicted.sketch.uses(hash));
        let mut row = Row::new(hash, uses, context.now, content);
        row.mark(mark);
        if !self.claim(row.places(), context) {
            let is_limited = self.remember(row, 1, context.now);
            return context.capacity.count_eviction(is_limited);
        }
        if self.rows.len() == self.rows.capacity() {
            self.renew(context);
        }
        context.capacity.count_entries(1);
        self.rows.insert_unique(hash, row, |row| row.hash);
    }

    /// Claims places, and evicts other rows until there are enough. Returns `false` if no other row is left.
    fn claim(&mut self, places: usize, context: &Context<'_>) -> bool {
        loop {
            if context.capacity.claim(places) {
                return true;
            }
            if !self.make_room(context) {
                return false;
            }
        }
    }

    /// Drops the rows that have been full for a while, and writes the others to a table that has room for more.
    ///
    /// Removed rows leave marks in the table that count as rows. A table that grew by itself would therefore double
    /// its size while rows are only exchanged for others.
    fn renew(&mut self, context: &Context<'_>) {
        let instant = context.now.saturating_sub(KEPT_FULL);
        self.rows.retain(|row| {
            let is_kept = row.full_at() > instant;
            if !is_kept {
                Self::forget(row.places(), context.capacity);
            }
            is_kept
        });
        let rows = mem::take(&mut self.rows);
        self.rows = HashTable::with_capacity(rows.len() + rows.len() / 16 + 1);
        self.hand = 0;
        for row in rows {
            self.rows.insert_unique(row.hash, row, |row| row.hash);
        }
    }

    /// Returns a count for a limit.
    pub(super) fn count(&mut self, counter: Counter<'_>, value: u64) -> Count {
        Count {
            definition: self.definitions.get(counter),
            value,
        }
    }

    /// Returns the counts of an entry, or `None` if one of its states needs more than a count.
    pub(super) fn counts_of(&mut self, entry: &Entry) -> Option<Content> {
        let mut counts = Counts::new();
        for slot in &entry.slots {
            let value = slot.state.packed(&slot.quota, entry.at().as_micros())?;
            let counter = Counter {
                id: slot.limit,
                quota: &slot.quota,
            };
            counts.push(self.count(counter, value));
        }
        Some(Content::of(counts))
    }

    /// Forgets every row.
    pub(super) fn clear(&mut self, capacity: &Capacity) {
        for row in &self.rows {
            Self::forget(row.places(), capacity);
        }
        let hits = self.filter_hits();
        *self = Self::default();
        if hits > 0 {
            self.evicted.get_or_insert_default().filter_hits = hits;
        }
    }

    pub(super) fn definitions(&self) -> usize {
        self.definitions.len()
    }

    pub(super) fn filter_hits(&self) -> u64 {
        self.evicted
            .as_ref()
            .map_or(0, |evicted| evicted.filter_hits)
    }

    /// Returns the bytes of the rows and of everything beside them.
    pub(super) fn bytes(&self) -> usize {
        let heap: usize = self.rows.iter().map(Row::heap_bytes).sum();
        let evicted = self.evicted.as_ref().map_or(0, |evicted| evicted.bytes());
        self.rows.allocation_size() + heap + self.definitions.bytes() + evicted
    }
}
