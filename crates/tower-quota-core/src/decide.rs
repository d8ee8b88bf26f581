//! The decision over several entries. Every store agrees with this model.

use core::time::Duration;

use smallvec::SmallVec;

use crate::algorithm::Refund;
use crate::charge::{Charge, ChargeMode, Operation};
use crate::decision::Decision;
use crate::entry::Entry;
use crate::outcome::Outcome;
use crate::quota::Quota;
use crate::status::{Left, LimitStatus};
use crate::time::Timestamp;

/// The last instant for a decision, early enough that no state overflows. (The stored form ends in the year 4253.)
const LATEST: Timestamp = Timestamp::from_micros(1 << 60);

/// The units of one charge, and the outcome by its limit.
struct Assessment {
    units: u64,
    outcome: Outcome,
    /// The units that the state has recorded.
    taken: u64,
}

/// Decides all charges of a request in one step, on the entries of their keys.
///
/// `entry_of` returns the position in `entries` of the charge at a position in `charges`.
///
/// 1. An entry that is too far in the future is dropped.
/// 2. If an entry was changed after `now`, the decision is made at that later instant.
/// 3. Each calendar quota becomes the fixed window [at](Quota::at) that instant.
/// 4. Each limit judges its charge. An enforced charge that does not fit refuses the request.
/// 5. If an admitted request takes a hold and an entry was changed at this instant, the charges are taken a microsecond
///    later. The instant of a decision identifies its holds.
/// 6. If the request is admitted, all charges are taken. A shadow is taken only if it fits too. Reports take nothing.
///    Forced charges are taken in any case.
///
/// A refused request and a peek change no entry, with one exception: a refused request converts a state to the request's
/// quota, because the new rate holds from then on. If the state would be full by the new quota, it stays as it is.
pub fn decide(
    operation: Operation,
    charges: &[Charge<'_>],
    now: Timestamp,
    entries: &mut [&mut Entry],
    entry_of: impl Fn(usize) -> usize,
) -> Decision {
    let now = now.min(LATEST);
    for entry in entries
        .iter_mut()
        .filter(|entry| entry.is_from_the_future(now.as_micros()))
    {
        **entry = Entry::default();
    }
    let now = entries
        .iter()
        .map(|entry| entry.at)
        .fold(now.as_micros(), u64::max);
    if charges.iter().any(|charge| charge.quota().is_calendar()) {
        let at = Timestamp::from_micros(now);
        let windows: SmallVec<[Quota; 4]> =
            charges.iter().map(|charge| charge.quota().at(at)).collect();
        let charges: SmallVec<[Charge<'_>; 4]> = charges
            .iter()
            .zip(&windows)
            .map(|(charge, window)| charge.with_quota(window))
            .collect();
        return decide(operation, &charges, at, entries, entry_of);
    }
    let mut assessments = assess(operation, charges, now, entries, &entry_of);
    let refused = operation == Operation::Refuse
        || charges
            .iter()
            .zip(&assessments)
            .any(|(charge, assessment)| !charge.is_shadow() && assessment.outcome.is_refusal());
    let takes_holds = operation.takes() && !refused && charges.iter().any(Charge::is_hold);
    let now = entries
        .iter()
        .map(|entry| entry.at + u64::from(takes_holds))
        .fold(now, u64::max);
    // The second condition is for shadows.
    let stays_out = |charge: &Charge<'_>, assessment: &Assessment| {
        charge.mode() != ChargeMode::Forced && (refused || assessment.outcome.is_refusal())
    };

    let mut changed: SmallVec<[usize; 4]> = SmallVec::new();
    for (i, (charge, assessment)) in charges.iter().zip(&mut assessments).enumerate() {
        let entry = &mut *entries[entry_of(i)];
        let recorded = change(
            operation,
            charge,
            assessment.units,
            stays_out(charge, assessment),
            now,
            entry,
        );
        if strike(operation, charge, assessment, now, entry) | recorded.is_some() {
            changed.push(entry_of(i));
        }
        assessment.taken = recorded.unwrap_or(0);
    }
    changed
        .into_iter()
        .for_each(|entry| entries[entry].finish_change(now));

    let statuses = charges
        .iter()
        .zip(&assessments)
        .enumerate()
        .map(|(i, (charge, assessment))| {
            let entry = &*entries[entry_of(i)];
            // A counted refusal may have changed the outcome.
            let is_counted = charge.counts_refusals() || charge.penalised_by().is_some();
            let outcome = match stays_out(charge, assessment) && is_counted {
                true => entry.judge(charge, assessment.units, now),
                false => assessment.outcome,
            };
            let (balance, reset) = entry.balance(charge, now);
            LimitStatus {
                name: charge.name(),
                limit: charge.quota().capacity(),
                left: Left::of_balance(balance, Duration::from_micros(reset)),
                outcome,
                taken: assessment.taken,
                is_shadow: charge.is_shadow(),
            }
        });
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

/// Changes the limit of a charge. Returns the taken units, or `None` if the entry is unchanged.
fn change(
    operation: Operation,
    charge: &Charge<'_>,
    units: u64,
    stays_out: bool,
    now: u64,
    entry: &mut Entry,
) -> Option<u64> {
    let counter = charge.counter();
    let changes = match operation {
        Operation::Reset => true,
        Operation::Peek => false,
        Operation::Refund { taken_at } => {
            units > 0 && entry.may_refund(charge, taken_at.as_micros(), now)
        }
        Operation::Renew { taken_at } => {
            charge.is_hold() && entry.may_refund(charge, taken_at.as_micros(), now)
        }
        _ if stays_out => {
            units > 0 && (charge.counts_refusals() || entry.needs_conversion(counter, now))
        }
        _ => units > 0,
    };
    if !changes {
        return None;
    }
    let mut taken = 0;
    match operation {
        Operation::Reset => {
            entry.forget(counter.id);
            entry.forget(charge.name().strikes_id());
        }
        Operation::Refund { taken_at } => entry.edit(counter, now, |state| {
            let is_prepared = charge.is_refundable();
            state.refund(
                counter.quota,
                now,
                Refund {
                    cost: units,
                    taken_at: taken_at.as_micros(),
                    is_prepared,
                },
            );
        }),
        Operation::Renew { taken_at } => entry.edit(counter, now, |state| {
            taken = state.renew(counter.quota, now, taken_at.as_micros());
        }),
        _ if stays_out => entry.edit(counter, now, |state| {
            if charge.counts_refusals() {
                state.penalise(counter.quota, now, units);
            }
        }),
        _ => entry.edit(counter, now, |state| {
            taken = state.take(counter.quota, now, units);
            if charge.is_refundable() {
                state.watch(counter.quota, now);
            }
        }),
    }
    Some(taken)
}

/// Adds a strike if this limit refuses. Returns whether the entry has changed.
fn strike(
    operation: Operation,
    charge: &Charge<'_>,
    assessment: &Assessment,
    now: u64,
    entry: &mut Entry,
) -> bool {
    let Some((counter, penalty)) = charge.strikes() else {
        return false;
    };
    let counts = matches!(operation, Operation::Check | Operation::Refuse) && assessment.units > 0;
    let refuses = assessment.outcome.is_refusal();
    if !counts || !(refuses || entry.needs_conversion(counter, now)) {
        return false;
    }
    entry.edit(counter, now, |state| {
        if refuses {
            state.strike(counter.quota, now, penalty.most_debt());
        }
    });
    true
}

/// Returns the units of each charge, and the outcome by its limit.
fn assess(
    operation: Operation,
    charges: &[Charge<'_>],
    now: u64,
    entries: &[&mut Entry],
    entry_of: impl Fn(usize) -> usize,
) -> SmallVec<[Assessment; 4]> {
    let left = |i: usize| {
        let (balance, _) = entries[entry_of(i)].balance(&charges[i], now);
        balance.max(0).cast_unsigned()
    };
    let takes_what_is_left =
        |charge: &Charge<'_>| operation.judges() && charge.is_at_most() && charge.units() > 0;
    // All charges that accept a partial grant get the same one. Shadows do not reduce it.
    let together = charges
        .iter()
        .enumerate()
        .filter(|(_, charge)| takes_what_is_left(charge) && !charge.is_shadow());
    let together = together
        .map(|(i, charge)| left(i).min(charge.units()))
        .min()
        .unwrap_or(u64::MAX);
    let assessment = |(i, charge): (usize, &Charge<'_>)| {
        let units = match takes_what_is_left(charge) {
            _ if charge.mode().is_report() => 0,
            true => left(i).min(charge.units()).min(together).max(1),
            false if operation == Operation::Peek => charge.units().max(1),
            false => charge.units(),
        };
        let outcome = match operation.judges() {
            true => entries[entry_of(i)].judge(charge, units, now),
            false => Outcome::Allow,
        };
        Assessment {
            units,
            outcome,
            taken: 0,
        }
    };
    charges.iter().enumerate().map(assessment).collect()
}
