//! A subject in a table: out of its row, to be changed, and back.

use smallvec::SmallVec;

use super::known::{Counted, Known};
use super::room::Room;
use super::row::{Count, MOST_LIMITS, Row, Use};
use super::table::Table;
use crate::algorithm::State;
use crate::subject::{Slot, Subject};

impl Row<'_> {
    /// The subject that the row is of, unless it is kept elsewhere.
    pub(super) fn subject(self, known: &Known) -> Subject {
        let slot = |count: Count| {
            let Counted { limit, quota } = *known.get(count.number)?;
            Some(Slot { limit, quota, state: State::unpacked(count.value, &quota, self.at()) })
        };
        Subject { at: self.at(), slots: self.counts().filter_map(slot).collect() }
    }

    /// When that subject is whole, in microseconds.
    fn whole_at(self, known: &Known) -> u64 {
        let reset = |count: Count| {
            let Counted { quota, .. } = known.get(count.number)?;
            Some(State::unpacked(count.value, quota, self.at()).left(quota, self.at(), self.at()).1)
        };
        self.at() + self.counts().filter_map(reset).max().unwrap_or(0)
    }
}

impl Table {
    /// Takes out the subject of a row, to be put back under the same lock.
    pub(super) fn check_out(&mut self, position: usize, known: &Known) -> Subject {
        let row = self.row(position);
        if !row.is_elsewhere() {
            return row.subject(known);
        }
        let hash = row.hash();
        self.rare().elsewhere.remove(&hash).unwrap_or_default()
    }

    /// When the subject of a row is whole, in microseconds.
    pub(super) fn whole_at(&self, position: usize, known: &Known) -> u64 {
        let row = self.row(position);
        self.elsewhere(row).map_or_else(|| row.whole_at(known), |subject| subject.whole_at().as_micros())
    }

    /// Puts a subject into the row at a position, which it may move from.
    pub(super) fn check_in(
        &mut self,
        position: usize,
        subject: Subject,
        use_of_it: Use,
        (room, known): (&Room, &Known),
    ) {
        let hash = self.row(position).hash();
        let counts = counts(&subject, known);
        let mut position = position;
        if let Some(counts) = &counts
            && !self.is_wide_enough(counts)
        {
            self.widen(room);
            // Who has found no row among wide ones, as good as nobody, is forgotten.
            let Some(found) = self.find(hash) else { return };
            position = found;
        }
        let mut row = self.row_mut(position);
        row.set_at(subject.at().as_micros());
        row.mark(use_of_it);
        match counts {
            Some(counts) => row.set_counts(&counts),
            None => {
                row.keep_elsewhere();
                self.rare().elsewhere.insert(hash, subject);
            }
        }
    }
}

/// What a row says of a subject, if one can hold it.
fn counts(subject: &Subject, known: &Known) -> Option<SmallVec<[Count; MOST_LIMITS]>> {
    if subject.slots.len() > MOST_LIMITS {
        return None;
    }
    let count = |slot: &Slot| {
        let value = slot.state.packed(&slot.quota, subject.at)?;
        Some(Count { number: known.number(&Counted { limit: slot.limit, quota: slot.quota })?, value })
    };
    subject.slots.iter().map(count).collect()
}
