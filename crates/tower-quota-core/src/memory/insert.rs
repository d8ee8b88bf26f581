//! Writing an entry: into its row, into a new row, or beside the rows.

use super::capacity::Capacity;
use super::filter::EvictedFilter;
use super::place::KeyPlace;
use super::row::{Count, MOST_LIMITS, Mark};
use super::table::Table;
use crate::charge::Charge;
use crate::entry::Entry;

/// The parts of the present request that a write to a table needs.
pub(super) struct WriteContext<'a> {
    pub(super) now: u64,
    pub(super) capacity: &'a Capacity,
    /// The keys of the request, none of which is evicted for another.
    pub(super) together: &'a [KeyPlace],
}

/// The part of an entry that is written.
pub(super) enum Content<'a> {
    /// The counts of a row, as of this instant.
    Counts(u64, &'a [Count]),
    /// An entry that does not fit into a row. It is taken.
    Entry(&'a mut Entry),
}

impl Table {
    /// Writes an entry, whose row was at this position if it had one.
    ///
    /// If there is no row for it, the evicted filter remembers its limits as spent for the time of one unit each.
    pub(super) fn write(
        &mut self,
        (hash, position): (u64, Option<usize>),
        content: Content<'_>,
        mark: Mark,
        context: &WriteContext<'_>,
    ) {
        if let Content::Counts(_, counts) = content
            && !self.is_wide_enough(counts)
        {
            self.widen(context);
        }
        // The row may have moved, for another key of the request or because the rows are wide now.
        let position = position.and_then(|position| match self.row(position).hash() == hash {
            true => Some(position),
            false => self.find(hash),
        });
        let Some(position) = position.or_else(|| self.place(hash, context)) else {
            let entry = match content {
                Content::Counts(at, counts) => self.entry_of(at, counts.iter().copied()),
                Content::Entry(entry) => core::mem::take(entry),
            };
            let is_limited = self.remember(hash, &entry, 1, context.now);
            return context.capacity.count_eviction(is_limited);
        };
        if self.row(position).is_elsewhere() {
            self.rare().elsewhere.remove(&hash);
        }
        let mut row = self.row_mut(position);
        row.mark(mark);
        match content {
            Content::Counts(at, counts) => {
                row.set_at(at);
                row.set_counts(counts);
            }
            Content::Entry(entry) => {
                row.set_at(entry.at().as_micros());
                row.keep_elsewhere();
                self.rare().elsewhere.insert(hash, core::mem::take(entry));
            }
        }
    }

    /// Gives a new key a row of full limits, for a first request that they admit.
    ///
    /// Returns `None` if they do not admit it, if a limit was spent when the key was evicted, or if there is no place.
    #[inline]
    pub(super) fn open<'c>(
        &mut self,
        hash: u64,
        charges: impl Iterator<Item = &'c Charge<'c>>,
        context: &WriteContext<'_>,
    ) -> Option<usize> {
        let (mut counts, mut ids, mut limits) =
            ([Count::default(); MOST_LIMITS], [0; MOST_LIMITS], 0);
        for charge in charges {
            let counter = charge.counter();
            let is_named_twice = ids[..limits].contains(&counter.id);
            let is_spent = |filter: &mut EvictedFilter| {
                filter.until((hash, counter.id), context.now).is_some()
            };
            if is_named_twice
                || charge.units() > charge.quota().capacity()
                || self.filter().is_some_and(is_spent)
            {
                return None;
            }
            counts[limits].number = self.interned.number_of(counter)?;
            ids[limits] = counter.id;
            limits += 1;
        }
        let counts = &counts[..limits];
        if !self.is_wide_enough(counts) {
            self.widen(context);
        }
        let position = self.place(hash, context)?;
        let mut row = self.row_mut(position);
        row.set_at(context.now);
        row.set_counts(counts);
        Some(position)
    }

    /// Notes that a limit that was found in the evicted filter is counted in a row from here on.
    pub(super) fn restored(&mut self, hash: u64, number: u16) {
        if let (Some(definition), Some(rare)) = (self.interned.get(number), &mut self.rare) {
            rare.filter.forget((hash, definition.limit));
        }
    }

    /// Forgets an entry and frees its row.
    pub(super) fn forget(&mut self, hash: u64, capacity: &Capacity) {
        if let Some(position) = self.find(hash) {
            self.vacate(position);
            capacity.release(1);
        }
    }
}
