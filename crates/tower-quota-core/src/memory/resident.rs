//! A subject in a table: out of its row, to be changed, and back.

use smallvec::SmallVec;

use super::known::{Counted, Known};
use super::room::Room;
use super::row::{Count, MOST_LIMITS, Row, Use};
use super::table::Table;
use crate::algorithm::{State, bucket};
use crate::entry::{Entry, Slot};

/// What a subject's last charge has left it.
#[derive(Clone, Copy)]
pub(super) struct Last {
    /// When all of it is back, in microseconds.
    pub(super) whole_at: u64,
    /// Whether that was nothing of some limit, or it was refused since.
    pub(super) was_limited: bool,
}

impl Row<'_> {
    /// The subject that the row is of, unless it is kept elsewhere.
    pub(super) fn subject(self, known: &Known) -> Entry {
        let slot = |count: Count| {
            let Counted { limit, quota } = *known.get(count.number)?;
            Some(Slot { limit, quota, state: State::unpacked(count.value, &quota, self.at()) })
        };
        Entry { at: self.at(), slots: self.counts().filter_map(slot).collect() }
    }

    /// What its last charge has left that subject.
    #[inline]
    fn last(self, known: &Known) -> Last {
        let at = self.at();
        let mut last = Last { whole_at: at, was_limited: self.was_refused() };
        for count in self.counts() {
            let Some(Counted { quota, .. }) = known.get(count.number) else { continue };
            let (is_spent, reset) = if quota.refill() > 0 {
                (bucket::is_spent(quota, count.value), bucket::reset(quota, count.value))
            } else {
                let (remaining, reset) = State::unpacked(count.value, quota, at).left(quota, at);
                (remaining == 0, reset)
            };
            last.whole_at = last.whole_at.max(at + reset);
            last.was_limited |= is_spent;
        }
        last
    }
}

impl Table {
    /// Takes out the subject of a row, to be put back under the same lock.
    pub(super) fn check_out(&mut self, position: usize, known: &Known) -> Entry {
        let row = self.row(position);
        if !row.is_elsewhere() {
            return row.subject(known);
        }
        let hash = row.hash();
        self.rare().elsewhere.remove(&hash).unwrap_or_default()
    }

    /// What the last charge of a row's subject has left it.
    #[inline]
    pub(super) fn last(&self, row: Row<'_>, known: &Known) -> Last {
        match self.elsewhere(row) {
            None => row.last(known),
            Some(subject) => Last {
                whole_at: subject.full_at().as_micros(),
                was_limited: row.was_refused() || subject.is_limited(subject.at()),
            },
        }
    }

    /// Puts a subject into the row at a position, which it may move from.
    pub(super) fn check_in(&mut self, position: usize, subject: Entry, use_of_it: Use, (room, known): (&Room, &Known)) {
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
fn counts(subject: &Entry, known: &Known) -> Option<SmallVec<[Count; MOST_LIMITS]>> {
    if subject.slots.len() > MOST_LIMITS {
        return None;
    }
    let count = |slot: &Slot| {
        let value = slot.state.packed(&slot.quota, subject.at)?;
        Some(Count { number: known.number(&Counted { limit: slot.limit, quota: slot.quota })?, value })
    };
    subject.slots.iter().map(count).collect()
}
