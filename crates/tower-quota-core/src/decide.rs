//! The decision over several entries. Every store agrees with this model.

use core::time::Duration;

use smallvec::SmallVec;

use crate::charge::{Charge, ChargeMode, Operation};
use crate::decision::Decision;
use crate::entry::Entry;
use crate::outcome::Outcome;
use crate::quota::Quota;
use crate::status::{Left, LimitStatus};
use crate::time::Timestamp;

/// The last instant for a decision, early enough that no state overflows. (The stored form ends in the year 4253.)
const LATEST: Timestamp = Timestamp::from_micros(1 << 60);

/// A charge, and what the decision has found out about it.
struct Part<'a> {
    charge: &'a Charge<'a>,
    /// The position of the charge's entry.
    entry: usize,
    units: u64,
    outcome: Outcome,
    is_left_out: bool,
    /// The units that the state has recorded, if the entry has changed.
    recorded: Option<u64>,
}

/// Decides all charges of a request in one step, on the entries of their keys.
///
/// `entry_of` returns the position in `entries` of the charge at a position in `charges`. The decision follows these
/// steps:
///
/// 1. An entry that is too far in the future is dropped.
/// 2. If an entry was changed after `now`, the decision is made at that later instant.
/// 3. Each calendar quota becomes the fixed window [at](Quota::at) that instant.
/// 4. Each limit judges its charge. If an enforced charge does not fit, the request is refused.
/// 5. If an admitted request takes a hold and an entry was changed at this instant, the charges are taken a microsecond
///    later, because the instant of a decision identifies its holds.
/// 6. If the request is admitted, all charges are taken. A shadow is taken only if it fits. Reports take no units, and
///    forced charges are taken in any case.
///
/// A refused request and a peek leave the entries unchanged, with one exception. A refused request converts a state to
/// its own quota, unless the state would be full by this quota, because the new rate applies from then on.
pub fn decide(
    operation: Operation,
    charges: &[Charge<'_>],
    now: Timestamp,
    entries: &mut [&mut Entry],
    entry_of: impl Fn(usize) -> usize,
) -> Decision {
    let mut now = now.as_micros().min(LATEST.as_micros());
    for entry in entries.iter_mut() {
        if entry.is_from_the_future(now) {
            **entry = Entry::default();
        }
    }
    now = entries.iter().map(|entry| entry.at).fold(now, u64::max);
    if charges.iter().any(|charge| charge.quota().is_calendar()) {
        let at = Timestamp::from_micros(now);
        let windows: SmallVec<[Quota; 4]> =
            charges.iter().map(|charge| charge.quota().at(at)).collect();
        let charges = charges.iter().zip(&windows);
        let charges: SmallVec<[Charge<'_>; 4]> = charges
            .map(|(charge, window)| charge.with_quota(window))
            .collect();
        return decide(operation, &charges, at, entries, entry_of);
    }
    let mut parts = assess(operation, charges, now, entries, &entry_of);
    let refused = operation == Operation::Refuse
        || parts
            .iter()
            .any(|part| !part.charge.is_shadow() && part.outcome.is_refusal());
    if operation.takes() && !refused && charges.iter().any(Charge::is_hold) {
        now = entries.iter().map(|entry| entry.at + 1).fold(now, u64::max);
    }
    for part in &mut parts {
        // A shadow is left out alone.
        part.is_left_out =
            part.charge.mode() != ChargeMode::Forced && (refused || part.outcome.is_refusal());
        let entry = &mut *entries[part.entry];
        part.recorded = part.change(operation, now, entry);
        if part.strike(operation, now, entry) {
            part.recorded.get_or_insert_default();
        }
    }
    for part in &parts {
        if part.recorded.is_some() {
            entries[part.entry].finish_change(now);
        }
    }
    let statuses = parts
        .iter()
        .map(|part| part.status(entries[part.entry], now));
    Decision::from_statuses(operation, Timestamp::from_micros(now), statuses)
}

impl Entry {
    /// Calls [`decide`] for charges of this entry's key.
    pub fn decide(
        &mut self,
        operation: Operation,
        charges: &[Charge<'_>],
        now: Timestamp,
    ) -> Decision {
        decide(operation, charges, now, &mut [self], |_| 0)
    }
}

/// Returns the units of each charge, and the outcome by its limit.
fn assess<'a>(
    operation: Operation,
    charges: &'a [Charge<'a>],
    now: u64,
    entries: &[&mut Entry],
    entry_of: impl Fn(usize) -> usize,
) -> SmallVec<[Part<'a>; 4]> {
    let partial_grant = |i: usize, charge: &Charge<'_>| {
        let is_partial = operation.judges() && charge.is_at_most() && charge.units() > 0;
        is_partial.then(|| {
            let (left, _) = entries[entry_of(i)].balance(charge, now);
            charge.units().min(left.max(0).cast_unsigned())
        })
    };
    // All charges that accept a partial grant get the same number of units. Shadows do not reduce it.
    let mut together = u64::MAX;
    for (i, charge) in charges.iter().enumerate() {
        if !charge.is_shadow() {
            together = together.min(partial_grant(i, charge).unwrap_or(u64::MAX));
        }
    }
    let assess = |(i, charge): (usize, &'a Charge<'a>)| {
        let entry = entry_of(i);
        let units = match partial_grant(i, charge) {
            _ if charge.mode().is_report() => 0,
            Some(units) => units.min(together).max(1),
            None if operation == Operation::Peek => charge.units().max(1),
            None => charge.units(),
        };
        let outcome = match operation.judges() {
            true => entries[entry].judge(charge, units, now),
            false => Outcome::Allow,
        };
        Part {
            charge,
            entry,
            units,
            outcome,
            is_left_out: false,
            recorded: None,
        }
    };
    charges.iter().enumerate().map(assess).collect()
}

impl Part<'_> {
    /// Changes the limit of the charge. Returns the taken units, or `None` if the entry is unchanged.
    fn change(&self, operation: Operation, now: u64, entry: &mut Entry) -> Option<u64> {
        let (charge, units) = (self.charge, self.units);
        let (counter, quota) = (charge.counter(), charge.quota());
        let mut taken = 0;
        match operation {
            Operation::Reset => {
                entry.forget(counter.id);
                entry.forget(charge.name().strikes_id());
            }
            Operation::Peek => return None,
            Operation::Refund { taken_at } | Operation::Renew { taken_at }
                if !entry.may_refund(charge, taken_at.as_micros(), now) =>
            {
                return None;
            }
            Operation::Renew { taken_at } if charge.is_hold() => {
                entry.edit(counter, now, |state| {
                    taken = state.renew(quota, now, taken_at.as_micros());
                });
            }
            Operation::Renew { .. } => return None,
            _ if units == 0 => return None,
            Operation::Refund { taken_at } => entry.edit(counter, now, |state| {
                let is_prepared = charge.is_refundable();
                state.refund(quota, now, units, taken_at.as_micros(), is_prepared);
            }),
            _ if !self.is_left_out => entry.edit(counter, now, |state| {
                taken = state.take(quota, now, units);
                if charge.is_refundable() {
                    state.watch(quota, now);
                }
            }),
            _ if charge.counts_refusals() => {
                entry.edit(counter, now, |state| state.penalise(quota, now, units, 0));
            }
            _ if entry.needs_conversion(counter, now) => entry.edit(counter, now, |_| {}),
            _ => return None,
        }
        Some(taken)
    }

    /// Adds a strike if this limit refuses. Returns whether the entry has changed.
    fn strike(&self, operation: Operation, now: u64, entry: &mut Entry) -> bool {
        let Some((counter, penalty)) = self.charge.strikes() else {
            return false;
        };
        let counts = matches!(operation, Operation::Check | Operation::Refuse) && self.units > 0;
        let refuses = self.outcome.is_refusal();
        let changes = counts && (refuses || entry.needs_conversion(counter, now));
        if changes {
            entry.edit(counter, now, |state| {
                let strikes = u64::from(refuses);
                state.penalise(counter.quota, now, strikes, penalty.most_debt());
            });
        }
        changes
    }

    fn status(&self, entry: &Entry, now: u64) -> LimitStatus {
        let charge = self.charge;
        let (balance, reset) = entry.balance(charge, now);
        // A counted refusal may have changed the outcome.
        let is_counted = charge.counts_refusals() || charge.penalised_by().is_some();
        let outcome = match self.is_left_out && is_counted {
            true => entry.judge(charge, self.units, now),
            false => self.outcome,
        };
        LimitStatus {
            name: charge.name(),
            limit: charge.quota().capacity(),
            left: Left::of_balance(balance, Duration::from_micros(reset)),
            outcome,
            taken: self.recorded.unwrap_or(0),
            is_shadow: charge.is_shadow(),
        }
    }
}
