//! Drafts: one key's counts, copied from their row while a request is decided.

use super::entry::spent_until;
use super::insert::{Content, WriteContext};
use super::row::{Count, MOST_LIMITS, Mark};
use super::table::Table;
use crate::algorithm::State;
use crate::charge::Charge;

/// The counts of a key as of the request. The table changes only in [`write`](Self::write).
#[derive(Clone, Copy, Default)]
pub(super) struct Draft {
    hash: u64,
    /// The row, if the key has one.
    position: Option<usize>,
    counts: [Count; MOST_LIMITS],
    limits: usize,
    /// The limits that the request asked, a bit for each position.
    asked: u8,
    /// The limits that were found in the evicted filter.
    restored: u8,
    /// Says whether the row changes also if the request is refused: a count was converted to another quota, or is
    /// spent for less time than the evicted filter says.
    must_be_written: bool,
    /// Says whether one of its limits does not admit the request.
    is_refused: bool,
    /// Says whether one of these would admit it later.
    refuses: bool,
}

impl Draft {
    /// Makes the draft of a key whose row is at this position, if it has one.
    pub(super) fn new(hash: u64, position: Option<usize>) -> Self {
        Self {
            hash,
            position,
            ..Self::default()
        }
    }

    /// Reads the counts of the row as of `now`. Returns `None` if the model has to decide.
    pub(super) fn load(&mut self, table: &Table, now: u64) -> Option<()> {
        let Some(position) = self.position else {
            return Some(());
        };
        let row = table.row(position);
        if row.is_elsewhere() {
            return None;
        }
        for count in row.counts() {
            self.counts[self.limits] = table.interned.advanced(count, row.at(), now);
            self.limits += 1;
        }
        Some(())
    }

    /// Finds the count of a charge's limit, and returns its position. Returns `None` if the model has to decide.
    ///
    /// 1. The limit is among the counts. If it is counted by another quota, the count is converted.
    /// 2. Otherwise it gets a new position. Its count comes from the evicted filter, or is 0.
    pub(super) fn judge(
        &mut self,
        table: &mut Table,
        charge: &Charge<'_>,
        now: u64,
    ) -> Option<usize> {
        let counter = charge.counter();
        let counts = &self.counts[..self.limits];
        let found = counts
            .iter()
            .position(|count| table.interned.is_limit(count.number, counter.id));
        let position = match found {
            Some(position) => position,
            None if self.limits < MOST_LIMITS => {
                self.limits += 1;
                self.limits - 1
            }
            // A limit that is full again, and is none of the request's, loses its position.
            None => counts
                .iter()
                .enumerate()
                .position(|(at, count)| count.value == 0 && self.asked >> at & 1 == 0)?,
        };
        if self.asked >> position & 1 != 0 {
            // The request has the same limit twice: the model counts both together.
            return None;
        }
        self.asked |= 1 << position;
        let (count, quota) = (&mut self.counts[position], counter.quota);
        if found.is_none() {
            let number = table.interned.number_of(counter)?;
            *count = Count { number, value: 0 };
            if let Some(until) = table.evicted_until((self.hash, counter.id), now) {
                if quota.refill() == 0 {
                    return None;
                }
                let restored = spent_until(quota, until, now, quota.capacity() * quota.grain());
                count.value = restored.value;
                self.restored |= 1 << position;
                self.must_be_written |= restored.is_cut;
            }
        } else if !table.interned.is_counter(count.number, counter) {
            let number = table.interned.number_of(counter)?;
            let old = table.interned.quota(count.number)?;
            // An unused limit is unused by any quota.
            if count.value > 0 {
                count.value = State::unpacked(count.value, old, now)
                    .convert(old, quota, now)
                    .packed(quota, now)?;
                self.must_be_written = true;
            }
            count.number = number;
        }
        if !charge.fits(count.value, now) {
            self.is_refused = true;
            self.refuses |= charge.units() <= quota.capacity();
        }
        Some(position)
    }

    /// Returns whether all of its limits admit the request.
    pub(super) const fn is_admitted(&self) -> bool {
        !self.is_refused
    }

    /// Takes a charge's units. Returns `None` if the model has to decide.
    pub(super) fn take(&mut self, charge: &Charge<'_>, now: u64, position: usize) -> Option<()> {
        let count = &mut self.counts[position];
        count.value = charge.added(count.value, now)?;
        Some(())
    }

    /// Returns the count at a position.
    pub(super) const fn value(&self, position: usize) -> u64 {
        self.counts[position].value
    }

    /// Writes the counts into the table if the request has changed them.
    pub(super) fn write(&self, table: &mut Table, is_admitted: bool, context: &WriteContext<'_>) {
        let mark = match (is_admitted, self.refuses) {
            (true, _) => Mark::Charged,
            (false, true) => Mark::Refused,
            (false, false) => Mark::Neither,
        };
        if !is_admitted && !self.must_be_written {
            // Another key of the request may have moved the row.
            if let Some(position) = self
                .position
                .filter(|&position| table.row(position).hash() == self.hash)
            {
                table.row_mut(position).mark(mark);
            }
            return;
        }
        if self.restored != 0 {
            let restored = self
                .counts
                .iter()
                .enumerate()
                .filter(|(position, _)| self.restored >> position & 1 != 0);
            restored.for_each(|(_, count)| table.restored(self.hash, count.number));
        }
        let mut counts = self.counts;
        let mut limits = 0;
        for position in 0..self.limits {
            counts[limits] = counts[position];
            limits += usize::from(counts[position].value > 0);
        }
        match limits {
            0 => table.forget(self.hash, context.capacity),
            _ => table.write(
                (self.hash, self.position),
                Content::Counts(context.now, &counts[..limits]),
                mark,
                context,
            ),
        }
    }
}
