//! Decisions by the model: any algorithm and any operation, on entries taken out of their rows.

use smallvec::SmallVec;

use super::Inner;
use super::insert::{Content, WriteContext};
use super::place::{KeyPlace, Keys};
use super::row::Mark;
use super::table::Table;
use crate::charge::{Charge, Operation};
use crate::decide::decide;
use crate::decision::Decision;
use crate::entry::{Entry, Slot};
use crate::outcome::Outcome;
use crate::status::LimitStatus;
use crate::time::Timestamp;

/// An entry out of its table while a request is decided.
struct CheckedOut {
    entry: Entry,
    /// The entry as it was before, if it has no row.
    before: Option<Entry>,
    /// The limits that were found in the evicted filter.
    restored: SmallVec<[u32; 2]>,
    /// Says whether one of them is spent for less time than the filter says.
    is_cut: bool,
}

impl Inner {
    #[inline(never)] // Its stack is large, and rarely needed.
    pub(super) fn decide_by_model(&self, operation: Operation, charges: &[Charge<'_>]) -> Decision {
        let Keys { mut places, of } = self.keys_of(charges);
        let mut tables = self.lock(&mut places);
        let clock = self.time.now();
        let mut all = SmallVec::<[CheckedOut; 2]>::new();
        for (number, place) in places.iter_mut().enumerate() {
            let table = &mut *tables[place.guard];
            place.row =
                table.find_trusted(place.hash, clock.as_micros(), self.capacity_of(place.table));
            let own = charges
                .iter()
                .zip(&of)
                .filter(|(_, key)| **key == number)
                .map(|(charge, _)| charge);
            if operation == Operation::Reset
                && let Some(filter) = table.filter()
            {
                // A reset forgets strikes, also where the charge does not name their penalty.
                own.clone()
                    .for_each(|charge| filter.forget((place.hash, charge.name().strikes_id())));
            }
            all.push(check_out(place, table, own, clock));
        }
        let mut entries: SmallVec<[&mut Entry; 2]> = all
            .iter_mut()
            .map(|checked_out| &mut checked_out.entry)
            .collect();
        let decision = decide(operation, charges, clock, &mut entries, |charge| of[charge]);
        drop(entries);
        for (number, (place, mut checked_out)) in places.iter().zip(all).enumerate() {
            let own = decision
                .statuses()
                .iter()
                .zip(&of)
                .filter(|(_, key)| **key == number);
            let mark = mark_of(&decision, own.map(|(status, _)| status));
            // Only a refusal makes a promise. A peek writes nothing.
            checked_out.is_cut &= operation != Operation::Peek && mark == Mark::Refused;
            let capacity = self.capacity_of(place.table);
            let context = WriteContext {
                now: decision.at().as_micros(),
                capacity,
                together: &places,
            };
            check_in(place, checked_out, &mut tables[place.guard], mark, &context);
            self.finish(place.table, &mut tables[place.guard]);
        }
        decision
    }
}

/// Takes an entry out of its table, and restores limits that were spent when it was evicted.
fn check_out<'c>(
    place: &KeyPlace,
    table: &mut Table,
    charges: impl Iterator<Item = &'c Charge<'c>>,
    clock: Timestamp,
) -> CheckedOut {
    let mut entry = place
        .row
        .map_or_else(Entry::default, |position| table.check_out(position));
    let now = clock.max(entry.at()).as_micros();
    let (mut restored, mut is_cut) = (SmallVec::new(), false);
    let strikes = |charge: &'c Charge<'c>| charge.strikes().map(|(counter, _)| (counter, true));
    for (counter, is_strikes) in charges
        .flat_map(|charge| [Some((charge.counter(), false)), strikes(charge)])
        .flatten()
    {
        let is_counted = entry.slots.iter().any(|slot| slot.limit == counter.id);
        let until = if is_counted {
            None
        } else {
            table.evicted_until((place.hash, counter.id), now)
        };
        if let Some(slot) = until.and_then(|until| Slot::spent(counter, is_strikes, until, now)) {
            entry.slots.push(slot.value);
            restored.push(counter.id);
            is_cut |= slot.is_cut;
        }
    }
    let before = place.row.is_none().then(|| entry.clone());
    CheckedOut {
        entry,
        before,
        restored,
        is_cut,
    }
}

/// Puts an entry back, unless it has no row and has not changed.
fn check_in(
    place: &KeyPlace,
    checked_out: CheckedOut,
    table: &mut Table,
    mark: Mark,
    context: &WriteContext<'_>,
) {
    let CheckedOut {
        mut entry,
        before,
        restored,
        is_cut,
    } = checked_out;
    if !is_cut && before.is_some_and(|before| before == entry) {
        return;
    }
    if !restored.is_empty() {
        // Restored limits are as of now.
        entry.at = entry.at.max(context.now);
    }
    if let Some(filter) = table.filter() {
        restored
            .into_iter()
            .for_each(|limit| filter.forget((place.hash, limit)));
    }
    if entry.is_empty() {
        return table.forget(place.hash, context.capacity);
    }
    let key = (place.hash, place.row);
    match table.counts_of(&entry) {
        Some(counts) => table.write(
            key,
            Content::Counts(entry.at().as_micros(), &counts),
            mark,
            context,
        ),
        None => table.write(key, Content::Entry(&mut entry), mark, context),
    }
}

/// Returns the effect of a decision on one of its entries.
fn mark_of<'a>(decision: &Decision, mut own: impl Iterator<Item = &'a LimitStatus>) -> Mark {
    if decision.is_allowed() {
        return Mark::Charged;
    }
    match own.any(|status| !status.is_shadow && matches!(status.outcome, Outcome::Refuse(_))) {
        true => Mark::Refused,
        false => Mark::Neither,
    }
}
