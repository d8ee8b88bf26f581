//! What is remembered of one key.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use super::counted::is_counted;
use crate::charge::{Charge, Operation, OwnedCharge};
use crate::entry::Entry;
use crate::time::Timestamp;

/// The age at which records are no longer used in an outage, in microseconds.
const OUTAGE_AGE: u64 = 3_600_000_000;
/// The most calls in flight whose units are taken from a copy. With more, the limit is not exhausted.
const MOST_CALLS: usize = 16;

/// The last entry of a key that came with a refusal.
pub(super) struct Record {
    /// The entry, with the charges of later calls that the store has admitted.
    pub(super) entry: Entry,
    /// The instant of the refusal on the store's clock, and the number of the call.
    pub(super) since: (Timestamp, u64),
    /// The local instant before the call was sent.
    pub(super) sent: u64,
    /// Says whether the limits of this key have refused the request.
    pub(super) refuses: bool,
    pub(super) calls: Vec<KeyCall>,
    /// The refusals that the store has yet to count, by the number of the limit's name.
    pub(super) uncounted: BTreeMap<u32, u64>,
}

/// The part of a call in flight that concerns one key.
pub(super) struct KeyCall {
    pub(super) number: u64,
    pub(super) sent: u64,
    pub(super) charges: Vec<OwnedCharge>,
}

/// A copy of a record at the present instant.
#[derive(Clone)]
pub(super) struct Known {
    /// The entry with one unit taken for each later call in flight that it admits.
    pub(super) entry: Entry,
    /// The latest instant that the store's clock can have now.
    pub(super) store_now: Timestamp,
    /// Microseconds since before the call was sent.
    pub(super) age: u64,
    /// Says whether no call in flight will renew it.
    pub(super) is_renewable: bool,
}

impl Record {
    /// Returns a copy, unless the record is too old. A local clock that ran backwards ends it too.
    pub(super) fn known(&self, now: u64) -> Option<Known> {
        let age = now.checked_sub(self.sent)?;
        (age < OUTAGE_AGE).then(|| Known {
            entry: self.ahead(),
            store_now: self.store_at(now),
            age,
            is_renewable: self.refuses && self.calls.is_empty(),
        })
    }

    /// Returns the latest instant that the store's clock can have at a local instant.
    fn store_at(&self, local: u64) -> Timestamp {
        let elapsed = local.saturating_sub(self.sent);
        Timestamp::from_micros(self.since.0.as_micros().saturating_add(elapsed))
    }

    fn ahead(&self) -> Entry {
        let mut ahead = self.entry.clone();
        for call in self.calls.iter().filter(|call| call.number > self.since.1) {
            let charges = call.charges.iter().map(OwnedCharge::as_charge);
            let charges: SmallVec<[Charge<'_>; 4]> = charges.collect();
            let (now, mut copy) = (self.store_at(call.sent), ahead.clone());
            if copy.decide(Operation::Check, &charges, now).is_allowed() {
                let charges = charges.iter().filter(|charge| !charge.is_shadow());
                for charge in charges {
                    let unit = charge.cost(charge.units().min(1));
                    ahead.decide(Operation::Charge, &[unit], now);
                }
            }
        }
        ahead
    }

    /// Returns whether some charge counts by another quota than the entry.
    pub(super) fn has_other_quota<'c>(
        &self,
        mut charges: impl Iterator<Item = &'c Charge<'c>>,
        local: u64,
    ) -> bool {
        let now = self.store_at(local).as_micros();
        charges.any(|charge| self.entry.has_other_quota(charge.counter(), now))
    }

    /// Returns the local instant from which the limits are unused.
    pub(super) fn ends_at(&self) -> u64 {
        let left = self.entry.full_at().as_micros();
        let left = left.saturating_sub(self.since.0.as_micros());
        self.sent.saturating_add(left)
    }

    /// Counts a refused request, as the store will do.
    pub(super) fn count_refusal(&mut self, charges: &[Charge<'_>], local: u64) {
        let now = self.store_at(local);
        self.entry.decide(Operation::Refuse, charges, now);
        for charge in charges.iter().filter(|charge| is_counted(charge)) {
            *self.uncounted.entry(charge.name().id()).or_default() += 1;
        }
    }

    /// Notes a call that is about to be sent.
    pub(super) fn begin_call(&mut self, call: KeyCall) {
        if self.refuses && self.calls.len() < MOST_CALLS {
            self.calls.push(call);
        }
    }

    /// Forgets a call that has ended.
    pub(super) fn end_call(&mut self, number: u64) -> Option<KeyCall> {
        let position = self.calls.iter().position(|call| call.number == number)?;
        Some(self.calls.remove(position))
    }

    /// Charges what a call has taken of its charges. Returns whether the record still holds.
    pub(super) fn admit(&mut self, call: &KeyCall, at: Timestamp, taken: &[u64]) -> bool {
        if (at, call.number) < self.since {
            // The entry has counted the call already.
            return true;
        }
        let charges = call.charges.iter().zip(taken);
        let charges = charges.map(|(charge, taken)| charge.as_charge().cost(*taken));
        let charges: SmallVec<[Charge<'_>; 4]> = charges.collect();
        // Another process may have begun a window earlier that starts with the first request. It then ends earlier.
        let mut quotas = charges.iter().map(Charge::quota);
        quotas.all(|quota| quota.window_offset().is_some())
            && !self.has_other_quota(charges.iter(), self.sent)
            && self
                .entry
                .decide(Operation::Check, &charges, at)
                .is_allowed()
    }
}
