//! Drafts: one key's counts, copied from their row while a request is decided.

use super::entry::spent_until;
use super::insert::{Content, WriteContext};
use super::row::{Count, MOST_LIMITS, Mark};
use super::table::Table;
use crate::algorithm::{State, bucket};
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
    /// Says whether one of its limits refuses the request.
    refuses: bool,
}

/// The position and the used grains of one charge's limit.
#[derive(Clone, Copy, Default)]
pub(super) struct DraftCharge {
    /// The position of its limit in the draft.
    position: usize,
    /// Grains used: before the charge, and with it once it is taken.
    pub(super) used: u64,
}

impl Draft {
    /// Makes the draft of a key whose row is at this position, if it has one.
    pub(super) fn new(hash: u64, position: Option<usize>) -> Self {
        Self { hash, position, ..Self::default() }
    }

    /// Reads the counts of the row as of `now`. Returns `None` if the model has to decide.
    pub(super) fn load(&mut self, table: &Table, now: u64) -> Option<()> {
        let Some(position) = self.position else { return Some(()) };
        let row = table.row(position);
        if row.is_elsewhere() {
            return None;
        }
        for count in row.counts() {
            let value = match table.interned.refill(count.number) {
                0 => {
                    let quota = table.interned.quota(count.number)?;
                    State::unpacked(count.value, quota, row.at()).packed(quota, now)?
                }
                // The quota itself, which others may have pushed out of the cache, is not read.
                refill => count.value.saturating_sub((now - row.at()).saturating_mul(refill)),
            };
            self.counts[self.limits] = Count { value, ..count };
            self.limits += 1;
        }
        Some(())
    }

    /// Finds the count of a charge's limit. Returns `None` if the model has to decide.
    ///
    /// 1. The limit is among the counts. If it is counted by another quota, the count is converted.
    /// 2. Otherwise it gets a new position. Its count comes from the evicted filter, or is 0.
    pub(super) fn judge(
        &mut self,
        table: &mut Table,
        charge: &Charge<'_>,
        now: u64,
        asked: &mut DraftCharge,
    ) -> Option<()> {
        let counter = charge.counter();
        let counts = &self.counts[..self.limits];
        let found = counts.iter().position(|count| table.interned.is_limit(count.number, counter.id));
        let position = match found {
            Some(position) => position,
            None if self.limits < MOST_LIMITS => {
                self.limits += 1;
                self.limits - 1
            }
            // A limit that is full again, and is none of the request's, loses its position.
            None => counts.iter().enumerate().position(|(at, count)| count.value == 0 && self.asked >> at & 1 == 0)?,
        };
        if self.asked >> position & 1 != 0 {
            // The request has the same limit twice: the model counts both together.
            return None;
        }
        self.asked |= 1 << position;
        let count = &mut self.counts[position];
        if found.is_none() {
            count.value = 0;
            if let Some(until) = table.evicted_until((self.hash, counter.id), now) {
                let full = charge.quota().capacity() * charge.quota().grain();
                let restored = spent_until(charge.quota(), until, now, full);
                count.value = restored.value;
                self.restored |= 1 << position;
                self.must_be_written |= restored.is_cut;
            }
            count.number = table.interned.number_of_bucket(counter)?;
        } else if !table.interned.is_bucket_of(count.number, counter) {
            table.interned.number_of_bucket(counter)?;
            self.must_be_written |= count.value > 0;
            *count = table.interned.count_for(counter, *count, 0)?;
        }
        self.refuses |= bucket::refuses(charge.quota(), count.value, charge.units());
        (asked.position, asked.used) = (position, count.value);
        Some(())
    }

    /// Takes a charge's units.
    pub(super) fn take(&mut self, charge: &Charge<'_>, asked: &mut DraftCharge) {
        asked.used += charge.units() * charge.quota().grain();
        self.counts[asked.position].value = asked.used;
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
            if let Some(position) = self.position.filter(|&position| table.row(position).hash() == self.hash) {
                table.row_mut(position).mark(mark);
            }
            return;
        }
        if self.restored != 0 {
            let restored = self.counts.iter().enumerate().filter(|(position, _)| self.restored >> position & 1 != 0);
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
            _ => {
                table.write((self.hash, self.position), Content::Counts(context.now, &counts[..limits]), mark, context)
            }
        }
    }
}
