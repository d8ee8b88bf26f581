//! Plain checks of any limits of any keys, windows that begin at known instants among them.
//!
//! Rows that count all limits of the request are changed in place. Other rows are decided on drafts.

use smallvec::SmallVec;

use super::Inner;
use super::charged::conclude;
use super::draft::Draft;
use super::insert::WriteContext;
use super::place::Keys;
use crate::charge::{Charge, Operation};
use crate::decision::Decision;

/// The most charges that are decided on drafts.
const MOST_CHARGES: usize = 8;

impl Inner {
    /// Checks `N` charges of any keys.
    #[inline(never)]
    pub(super) fn check_several<const N: usize>(
        &self,
        charges: [&Charge<'_>; N],
        decision: &mut Decision,
    ) {
        if !charges.iter().all(|charge| charge.fits_row())
            || self.check_rows(charges, decision).is_none()
        {
            self.check_at_length(charges, decision);
        }
    }

    /// Checks charges of which a row does not count some limit.
    #[cold]
    #[inline(never)]
    pub(super) fn check_at_length<const N: usize>(
        &self,
        charges: [&Charge<'_>; N],
        decision: &mut Decision,
    ) {
        self.check_keys(&charges.map(|charge| *charge), decision);
    }

    /// Checks any number of charges of any keys.
    pub(super) fn check_keys(&self, charges: &[Charge<'_>], decision: &mut Decision) {
        if charges.len() > MOST_CHARGES
            || !charges.iter().all(Charge::fits_row)
            || self.check_drafts(charges, decision).is_none()
        {
            *decision = self.decide_by_model(Operation::Check, charges);
        }
    }

    /// Makes the decision on drafts, or does nothing if the model has to decide.
    fn check_drafts(&self, charges: &[Charge<'_>], decision: &mut Decision) -> Option<()> {
        let Keys { mut places, of } = self.keys_of(charges);
        let clock = self.time.now().as_micros();
        let mut tables = self.lock(&mut places);
        let mut now = clock;
        for place in &mut places {
            let table = &mut *tables[place.guard];
            place.row = table.find_trusted(place.hash, clock, self.capacity_of(place.table));
            now = now.max(place.row.map_or(0, |row| table.row(row).at()));
        }
        let drafts = places.iter().map(|place| Draft::new(place.hash, place.row));
        let mut drafts: SmallVec<[Draft; 2]> = drafts.collect();
        for (draft, place) in drafts.iter_mut().zip(&places) {
            draft.load(&tables[place.guard], now)?;
        }
        let mut positions = [0; MOST_CHARGES];
        for ((charge, &key), position) in charges.iter().zip(&of).zip(&mut positions) {
            *position = drafts[key].judge(&mut tables[places[key].guard], charge, now)?;
        }
        let is_admitted = drafts.iter().all(Draft::is_admitted);
        if is_admitted {
            for ((charge, &key), &position) in charges.iter().zip(&of).zip(&positions) {
                drafts[key].take(charge, now, position)?;
            }
        }
        for (draft, place) in drafts.iter().zip(&places) {
            let context = WriteContext {
                now,
                capacity: self.capacity_of(place.table),
                together: &places,
            };
            draft.write(&mut tables[place.guard], is_admitted, &context);
        }
        // Last, because the drafts hold numbers.
        places
            .iter()
            .for_each(|place| self.finish(place.table, &mut tables[place.guard]));
        drop(tables);
        let charge = |limit: usize| (&charges[limit], drafts[of[limit]].value(positions[limit]));
        conclude(decision, now, is_admitted, charges.len(), charge);
        Some(())
    }
}
