//! Decisions by the model: any algorithm and any operation, on entries taken out of their rows.

use smallvec::SmallVec;

use super::Inner;
use super::draft::Draft;
use super::insert::{Content, WriteContext};
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
        let (mut drafts, mut hashes) = (SmallVec::<[Draft; 2]>::new(), SmallVec::<[u64; 2]>::new());
        let mut draft_of = SmallVec::<[usize; 4]>::new();
        for charge in charges {
            let hash = self.seed.hash(charge.key());
            draft_of.push(hashes.iter().position(|known| *known == hash).unwrap_or_else(|| {
                drafts.push(Draft::new(hash, self.table_of(hash)));
                hashes.push(hash);
                hashes.len() - 1
            }));
        }
        let mut tables = self.lock(&mut drafts);
        let clock = self.time.now();
        let mut all = SmallVec::<[CheckedOut; 2]>::new();
        for (number, draft) in drafts.iter_mut().enumerate() {
            let table = &mut *tables[draft.guard];
            draft.find(table, clock.as_micros(), self.capacity_of(draft.table));
            let own = charges.iter().zip(&draft_of).filter(|(_, draft)| **draft == number).map(|(charge, _)| charge);
            if operation == Operation::Reset
                && let Some(filter) = table.filter()
            {
                // A reset forgets strikes, also where the charge does not name their penalty.
                own.clone().for_each(|charge| filter.forget((draft.hash, charge.name().strikes_id())));
            }
            all.push(check_out(draft, table, own, clock));
        }
        let mut entries: SmallVec<[&mut Entry; 2]> = all.iter_mut().map(|checked_out| &mut checked_out.entry).collect();
        let decision = decide(operation, charges, clock, &mut entries, |charge| draft_of[charge]);
        drop(entries);
        for (number, (draft, mut checked_out)) in drafts.iter().zip(all).enumerate() {
            let own = decision.statuses().iter().zip(&draft_of).filter(|(_, draft)| **draft == number);
            let mark = mark_of(&decision, own.map(|(status, _)| status));
            // Only a refusal makes a promise. A peek writes nothing.
            checked_out.is_cut &= operation != Operation::Peek && mark == Mark::Refused;
            let capacity = self.capacity_of(draft.table);
            let context = WriteContext { now: decision.at().as_micros(), capacity, together: &hashes };
            check_in(draft, checked_out, &mut tables[draft.guard], mark, &context);
            self.finish(draft.table, &mut tables[draft.guard]);
        }
        decision
    }
}

/// Takes an entry out of its table, and restores limits that were spent when it was evicted.
fn check_out<'c>(
    draft: &Draft,
    table: &mut Table,
    charges: impl Iterator<Item = &'c Charge<'c>>,
    clock: Timestamp,
) -> CheckedOut {
    let mut entry = draft.position.map_or_else(Entry::default, |position| table.check_out(position));
    let now = clock.max(entry.at()).as_micros();
    let (mut restored, mut is_cut) = (SmallVec::new(), false);
    let strikes = |charge: &'c Charge<'c>| charge.strikes().map(|(counter, _)| (counter, true));
    for (counter, is_strikes) in charges.flat_map(|charge| [Some((charge.counter(), false)), strikes(charge)]).flatten()
    {
        let is_counted = entry.slots.iter().any(|slot| slot.limit == counter.id);
        let until = if is_counted { None } else { table.evicted_until((draft.hash, counter.id), now) };
        if let Some(slot) = until.and_then(|until| Slot::spent(counter, is_strikes, until, now)) {
            entry.slots.push(slot.value);
            restored.push(counter.id);
            is_cut |= slot.is_cut;
        }
    }
    let before = draft.position.is_none().then(|| entry.clone());
    CheckedOut { entry, before, restored, is_cut }
}

/// Puts an entry back, unless it has no row and has not changed.
fn check_in(draft: &Draft, checked_out: CheckedOut, table: &mut Table, mark: Mark, context: &WriteContext<'_>) {
    let CheckedOut { mut entry, before, restored, is_cut } = checked_out;
    if !is_cut && before.is_some_and(|before| before == entry) {
        return;
    }
    if !restored.is_empty() {
        // Restored limits are as of now.
        entry.at = entry.at.max(context.now);
    }
    if let Some(filter) = table.filter() {
        restored.into_iter().for_each(|limit| filter.forget((draft.hash, limit)));
    }
    if entry.is_empty() {
        return table.forget(draft.hash, context.capacity);
    }
    let key = (draft.hash, draft.position);
    match table.counts_of(&entry) {
        Some(counts) => table.write(key, Content::Counts(entry.at().as_micros(), &counts), mark, context),
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
