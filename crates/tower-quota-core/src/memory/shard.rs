//! Holds a part of the store's rows.

use core::mem;
use core::sync::atomic::Ordering::Relaxed;

use hashbrown::HashTable;

use super::capacity::Capacity;
use super::definition::Definitions;
use super::evicted::Evicted;
use super::place::RowPlace;
use super::row::{Content, Count, Counts, Mark, Row};
use crate::charge::Counter;
use crate::entry::Entry;

/// Microseconds for which a growing table keeps full rows, for clients who return.
const KEPT_FULL: u64 = 60_000_000;

/// The hash of [`Key::EVERYONE`](crate::Key::EVERYONE), which has a shard of its own. No hash is 0.
pub(super) const EVERYONE: u64 = 1;

#[derive(Default)]
#[repr(C)] // The row of everyone shares a cache line with the lock, so that a request moves a single line.
pub(super) struct Shard {
    pub(super) everyone: Option<Row>,
    pub(super) rows: HashTable<Row>,
    definitions: Definitions,
    pub(super) hand: usize,
    pub(super) evicted: Option<Box<Evicted>>,
}

pub(super) struct Context<'a> {
    pub(super) now: u64,
    pub(super) capacity: &'a Capacity,
    /// The keys of the request. A request never evicts its own keys before they are full.
    pub(super) together: &'a [RowPlace],
}

impl Shard {
    fn all_rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().chain(&self.everyone)
    }

    fn add(&mut self, row: Row) {
        if row.hash() == EVERYONE {
            self.everyone = Some(row);
        } else {
            self.rows.insert_unique(row.hash(), row, Row::hash);
        }
    }

    pub(super) fn spent_until(&self, limit: (u64, u32), now: u64) -> Option<u64> {
        self.evicted.as_ref()?.filter.until(limit, now)
    }

    /// Takes a row out of the table. The places stay claimed.
    pub(super) fn take(&mut self, hash: u64) -> Option<Row> {
        if hash == EVERYONE {
            return self.everyone.take();
        }
        let found = self.rows.find_entry(hash, |row| row.hash() == hash);
        found.ok().map(|row| row.remove().0)
    }

    pub(super) fn put_back(&mut self, row: Row, claimed: usize, context: &Context<'_>) {
        let wanted = row.places();
        if wanted <= claimed {
            let unused = claimed - wanted;
            context.capacity.taken.fetch_sub(unused, Relaxed);
        } else if !self.claim(wanted - claimed, row.hash(), context) {
            // If no row is left to evict, take the places anyway. A single log may exceed the
            // capacity.
            context.capacity.taken.fetch_add(wanted - claimed, Relaxed);
        }
        self.add(row);
    }

    /// Adds the row of a new key.
    ///
    /// Without a free place, the shard remembers the limits as spent for the time of one unit.
    pub(super) fn insert(
        &mut self,
        hash: u64,
        content: Content,
        mark: Mark,
        context: &Context<'_>,
    ) {
        let evicted = self.evicted.as_ref();
        let uses = evicted.map_or(0, |evicted| evicted.sketch.uses(hash));
        let mut row = Row::new(hash, uses, context.now, content);
        row.mark(mark);
        if !self.claim(row.places(), hash, context) {
            let is_limited = self.remember(row, 1, context.now, context.capacity);
            return context.capacity.count_eviction(is_limited);
        }
        // The row of everyone is not in the table.
        if hash != EVERYONE && self.rows.len() == self.rows.capacity() {
            self.renew(context);
        }
        context.capacity.entries.fetch_add(1, Relaxed);
        self.add(row);
    }

    /// Adds the counts that the row of a key does not have.
    #[cold]
    pub(super) fn complete<'c>(
        &mut self,
        hash: u64,
        absent: impl Iterator<Item = (Counter<'c>, u64)>,
        context: &Context<'_>,
    ) {
        let mut added: Counts = absent
            .map(|(counter, value)| self.count(counter, value))
            .collect();
        let Some(row) = find(&mut self.everyone, &mut self.rows, hash) else {
            return self.insert(hash, Content::of(added), Mark::Charged, context);
        };
        for count in row.counts() {
            let limit = count.definition.limit;
            let is_replaced = added.iter().any(|added| added.definition.limit == limit);
            if count.value > 0 && !is_replaced {
                added.push(count.clone());
            }
        }
        row.content = Content::of(added);
    }

    fn claim(&mut self, places: usize, hash: u64, context: &Context<'_>) -> bool {
        loop {
            if context.capacity.claim(places) {
                return true;
            }
            if !self.make_room(hash, context) {
                return false;
            }
        }
    }

    /// Drops the rows that have been full for a while, and moves the rest to a table with room for more.
    ///
    /// Otherwise the table would double in size, because removed rows leave tombstones.
    fn renew(&mut self, context: &Context<'_>) {
        let instant = context.now.saturating_sub(KEPT_FULL);
        self.rows.retain(|row| {
            let is_kept = row.full_at() > instant;
            if !is_kept {
                context.capacity.forget(row.places());
            }
            is_kept
        });
        let rows = mem::take(&mut self.rows);
        self.rows = HashTable::with_capacity(rows.len() + rows.len() / 16 + 1);
        for row in rows {
            self.rows.insert_unique(row.hash(), row, Row::hash);
        }
    }

    pub(super) fn count(&mut self, counter: Counter<'_>, value: u64) -> Count {
        Count {
            definition: self.definitions.get(counter),
            value,
        }
    }

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

    pub(super) fn clear(&mut self, capacity: &Capacity) {
        for row in self.all_rows() {
            capacity.forget(row.places());
        }
        *self = Self::default();
    }

    pub(super) fn definitions(&self) -> usize {
        self.definitions.len()
    }

    pub(super) fn bytes(&self) -> usize {
        let heap: usize = self.all_rows().map(Row::heap_bytes).sum();
        let rows = self.rows.allocation_size() + heap + self.definitions.bytes();
        match &self.evicted {
            Some(evicted) => rows + evicted.filter.bytes() + evicted.sketch.bytes(),
            None => rows,
        }
    }
}

/// Finds a row in two fields of a shard, so that the other fields stay free.
#[inline(always)]
pub(super) fn find<'s>(
    everyone: &'s mut Option<Row>,
    rows: &'s mut HashTable<Row>,
    hash: u64,
) -> Option<&'s mut Row> {
    match hash {
        EVERYONE => everyone.as_mut(),
        _ => rows.find_mut(hash, |row| row.hash() == hash),
    }
}

#[cfg(test)]
mod tests {
    use core::ptr::from_ref;

    use super::super::Aligned;

    #[test]
    fn row_of_everyone_is_next_to_lock() {
        let aligned = Aligned::default();
        let shard = aligned.0.lock();
        let row = from_ref(&shard.everyone);
        let offset = row.addr() - from_ref(&aligned).addr();
        let end = offset + size_of_val(&shard.everyone);
        assert!(end <= 64, "{offset} to {end}");
    }
}
