//! The records of a request's keys.

use smallvec::SmallVec;

use super::counted::is_counted;
use super::record::Known;
use crate::charge::{Charge, Operation};
use crate::decide::decide;
use crate::decision::Decision;
use crate::entry::Entry;

/// Microseconds between calls that carry counted refusals to the store.
const COUNTED_AGE: u64 = 100_000;

pub(super) struct LookUp<'r> {
    pub(super) charges: &'r [Charge<'r>],
    /// The local instant.
    pub(super) now: u64,
    pub(super) keys: SmallVec<[KnownKey; 2]>,
    /// The position in `keys` of each charge's key.
    pub(super) of: SmallVec<[usize; 4]>,
}

/// A key of a request.
pub(super) struct KnownKey {
    pub(super) digest: u128,
    /// The epoch of the key's shard.
    pub(super) epoch: u64,
    pub(super) known: Option<Known>,
}

impl<'r> LookUp<'r> {
    pub(super) fn charges_of(&self, key: usize) -> SmallVec<[Charge<'r>; 4]> {
        let charges = self.charges.iter().zip(&self.of);
        let own = charges.filter(|(_, of)| **of == key);
        own.map(|(charge, _)| *charge).collect()
    }

    /// Returns the refusal of the request by copies of the entries, if any is younger than `max_age`.
    pub(super) fn refusal(&self, max_age: u64) -> Option<Decision> {
        let young = |key: &KnownKey| {
            let known = key.known.clone();
            known.filter(|known| known.age < max_age)
        };
        let known: SmallVec<[Option<Known>; 2]> = self.keys.iter().map(young).collect();
        // The clock of the store is not ahead of the latest instant.
        let now = known.iter().flatten().map(|known| known.store_now).max()?;
        let copies = known
            .into_iter()
            .map(|known| known.map(|known| known.entry));
        let mut copies: SmallVec<[Entry; 2]> = copies.map(Option::unwrap_or_default).collect();
        let mut copies: SmallVec<[&mut Entry; 2]> = copies.iter_mut().collect();
        let key_of = |charge| self.of[charge];
        let decision = decide(Operation::Check, self.charges, now, &mut copies, key_of);
        // Other processes may release a hold at any time.
        let has_hold = self.charges.iter().any(Charge::is_hold);
        (!decision.is_allowed() && !has_hold).then_some(decision)
    }

    /// Returns whether a refused request has to reach the store, to renew an entry or to count refusals.
    pub(super) fn is_due(&self, max_age: u64) -> bool {
        let mut renewed_at = max_age - max_age / 8;
        if self.charges.iter().any(is_counted) {
            renewed_at = COUNTED_AGE;
            // The count needs a record of each key.
            if self.keys.iter().any(|key| key.known.is_none()) {
                return true;
            }
        }
        let mut known = self.keys.iter().filter_map(|key| key.known.as_ref());
        known.any(|known| known.is_renewable && (renewed_at..max_age).contains(&known.age))
    }
}
