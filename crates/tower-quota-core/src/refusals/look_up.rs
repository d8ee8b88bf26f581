//! Finds the records of a request's keys.

use smallvec::SmallVec;

use super::record::{Known, is_counted};
use crate::charge::{Charge, Operation};
use crate::decide::decide;
use crate::decision::Decision;
use crate::entry::Entry;

const COUNTED_AGE: u64 = 100_000;

pub(super) struct LookUp<'r> {
    pub(super) charges: &'r [Charge<'r>],
    pub(super) now: u64,
    pub(super) keys: SmallVec<[KnownKey; 2]>,
}

pub(super) struct KnownKey {
    pub(super) digest: u128,
    pub(super) positions: SmallVec<[usize; 4]>,
    pub(super) epoch: u64,
    pub(super) known: Option<Known>,
}

impl KnownKey {
    pub(super) fn charges<'r>(&self, charges: &'r [Charge<'r>]) -> SmallVec<[Charge<'r>; 4]> {
        self.positions.iter().map(|&i| charges[i]).collect()
    }
}

impl LookUp<'_> {
    pub(super) fn refusal(&self, max_age: u64) -> Option<Decision> {
        if self.keys.iter().all(|key| key.known.is_none()) {
            return None;
        }
        let mut now = None;
        let mut copies: SmallVec<[Entry; 2]> = SmallVec::new();
        for key in &self.keys {
            let known = key.known.as_ref().filter(|known| known.age < max_age);
            // The latest of these instants is a bound for the store's clock.
            now = now.max(known.map(|known| known.store_now));
            copies.push(known.map(|known| known.entry.clone()).unwrap_or_default());
        }
        let mut copies: SmallVec<[&mut Entry; 2]> = copies.iter_mut().collect();
        let key_of = |charge| {
            let mut keys = self.keys.iter();
            let position = keys.position(|key| key.positions.contains(&charge));
            position.unwrap_or(0)
        };
        let decision = decide(Operation::Check, self.charges, now?, &mut copies, key_of);
        let mut statuses = decision.statuses().iter().zip(self.charges);
        // Leave holds to the store, because other processes may release a hold at any time.
        let is_refused = statuses.any(|(status, charge)| {
            status.outcome.is_refusal() && !charge.is_shadow() && !charge.is_hold()
        });
        is_refused.then_some(decision)
    }

    /// Returns whether a refused request has to reach the store, to renew an entry or to count refusals.
    pub(super) fn is_due(&self, max_age: u64) -> bool {
        let mut renewed_at = max_age - max_age / 8;
        if self.charges.iter().any(is_counted) {
            renewed_at = COUNTED_AGE;
            // A refusal can only be counted here with a record of each key.
            if self.keys.iter().any(|key| key.known.is_none()) {
                return true;
            }
        }
        let mut known = self.keys.iter().filter_map(|key| key.known.as_ref());
        known.any(|known| known.is_renewable && (renewed_at..max_age).contains(&known.age))
    }
}
