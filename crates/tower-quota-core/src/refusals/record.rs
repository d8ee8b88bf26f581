//! Records the last refusal of a key.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use crate::charge::{Charge, ChargeMode, Operation, OwnedCharge};
use crate::entry::Entry;
use crate::time::{Timestamp, micros};

const OUTAGE_AGE: u64 = 3_600_000_000;
/// The maximum number of calls in flight that charge a copy. A client with more calls is far from
/// the limit.
const MOST_CALLS: usize = 16;

pub(super) struct Record {
    pub(super) entry: Entry,
    /// The instant of the refusal on the store's clock, and the number of the call.
    pub(super) since: (Timestamp, u64),
    pub(super) sent: u64,
    pub(super) refuses: bool,
    pub(super) calls: Vec<KeyCall>,
    /// The refusals that the store has yet to count, by the id of the limit's name.
    pub(super) uncounted: BTreeMap<u32, u64>,
}

pub(super) struct KeyCall {
    pub(super) number: u64,
    pub(super) sent: u64,
    /// The charges, or none if the copies refuse the call.
    pub(super) charges: Vec<OwnedCharge>,
}

pub(super) struct Known {
    /// The entry, less one unit for each later call in flight.
    pub(super) entry: Entry,
    pub(super) store_now: Timestamp,
    pub(super) age: u64,
    pub(super) is_renewable: bool,
}

impl Record {
    /// Returns a copy, unless the record is too old or the local clock has run backwards.
    pub(super) fn known(&self, now: u64) -> Option<Known> {
        let age = now.checked_sub(self.sent)?;
        (!self.is_expired(now)).then(|| Known {
            entry: self.ahead(),
            store_now: self.store_at(now),
            age,
            is_renewable: self.refuses && self.calls.is_empty(),
        })
    }

    /// Returns whether the record is too old, even for an outage. A record of a later instant is not.
    pub(super) fn is_expired(&self, now: u64) -> bool {
        now.saturating_sub(self.sent) >= OUTAGE_AGE
    }

    fn store_at(&self, local: u64) -> Timestamp {
        let elapsed = local.saturating_sub(self.sent);
        Timestamp::from_micros(self.since.0.as_micros().saturating_add(elapsed))
    }

    fn ahead(&self) -> Entry {
        let mut ahead = self.entry.clone();
        for call in self.calls.iter().filter(|call| call.number > self.since.1) {
            let units = call.charges.iter().map(|charge| {
                let charge = charge.as_charge();
                charge.cost(charge.units().min(1))
            });
            let units: SmallVec<[Charge<'_>; 4]> = units.collect();
            // Decide on another copy, because a refusal may leave strikes.
            let mut copy = ahead.clone();
            let now = self.store_at(call.sent);
            if copy.decide(Operation::Check, &units, now).is_allowed() {
                ahead = copy;
            }
        }
        ahead
    }

    pub(super) fn has_other_quota(&self, charges: &[Charge<'_>], local: u64) -> bool {
        let now = self.store_at(local).as_micros();
        let mut charges = charges.iter();
        charges.any(|charge| self.entry.has_other_quota(charge.counter(), now))
    }

    pub(super) fn ends_at(&self) -> u64 {
        let left = self.entry.full_at().since(self.since.0);
        self.sent.saturating_add(micros(left))
    }

    pub(super) fn count_refusal(&mut self, charges: &[Charge<'_>], local: u64) {
        let now = self.store_at(local);
        self.entry.decide(Operation::Refuse, charges, now);
        for charge in charges.iter().filter(|charge| is_counted(charge)) {
            *self.uncounted.entry(charge.name().id()).or_default() += 1;
        }
    }

    pub(super) fn begin_call(&mut self, call: KeyCall) {
        if self.refuses && self.calls.len() < MOST_CALLS {
            self.calls.push(call);
        }
    }

    pub(super) fn end_call(&mut self, number: u64) -> Option<KeyCall> {
        let position = self.calls.iter().position(|call| call.number == number)?;
        Some(self.calls.remove(position))
    }

    /// Charges the units of an admitted call. Returns whether the record is still right.
    pub(super) fn admit(
        &mut self,
        call: &KeyCall,
        at: Timestamp,
        taken: impl Iterator<Item = u64>,
    ) -> bool {
        if (at, call.number) < self.since {
            // The call is older than the entry, which includes its charges.
            return true;
        }
        let charges = call.charges.iter().zip(taken);
        let charges = charges.map(|(charge, taken)| charge.as_charge().cost(taken));
        let charges: SmallVec<[Charge<'_>; 4]> = charges.collect();
        // A window that starts with a request may have started earlier, in another process.
        let is_aligned = |charge: &Charge<'_>| charge.quota().window_offset().is_some();
        let is_right = !charges.is_empty()
            && charges.iter().all(is_aligned)
            && !self.has_other_quota(&charges, self.sent)
            && self
                .entry
                .decide(Operation::Check, &charges, at)
                .is_allowed();
        // Without this, the stamps of admitted calls would make a log long again.
        let changed_at = self.entry.at();
        self.entry = core::mem::take(&mut self.entry).abridged(changed_at);
        is_right
    }
}

pub(super) fn is_counted(charge: &Charge<'_>) -> bool {
    charge.units() > 0
        && (charge.counts_refusals()
            || charge.penalised_by().is_some()
            || charge.mode() == ChargeMode::Forced)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Key;
    use crate::quota::Quota;

    #[test]
    fn admitted_calls_keep_log_abridged() {
        let (quota, key) = (Quota::per_hour(10_000).sliding_log(), Key::EVERYONE);
        let charge = Charge::new("log", &quota, &key);
        let since = Timestamp::from_micros(1);
        let mut record = Record {
            entry: Entry::default(),
            since: (since, 0),
            sent: 1,
            refuses: true,
            calls: Vec::new(),
            uncounted: BTreeMap::new(),
        };
        let call = KeyCall {
            number: 1,
            sent: 1,
            charges: vec![OwnedCharge::from(&charge)],
        };
        for micros in 2..1_000 {
            assert!(record.admit(&call, Timestamp::from_micros(micros), [1].into_iter()));
        }
        let bytes = record.entry.heap_bytes();
        assert!(bytes < 1_024, "{bytes} bytes");
        let peek = [charge.cost(0)];
        let at = Timestamp::from_micros(1_000);
        let left = record.entry.decide(Operation::Check, &peek, at);
        assert_eq!(left.statuses()[0].remaining(), 10_000 - 998);
    }
}
