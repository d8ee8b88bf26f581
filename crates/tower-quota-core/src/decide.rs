//! The decision over several entries. Every store agrees with this model.

use core::time::Duration;

use smallvec::SmallVec;

use crate::charge::{Charge, ChargeMode, Operation};
use crate::decision::Decision;
use crate::entry::{Entry, TRUSTED_LEAD};
use crate::outcome::Outcome;
use crate::quota::Quota;
use crate::status::{Left, LimitStatus};
use crate::time::Timestamp;

/// The last instant for a decision, early enough that no state overflows.
const LATEST: Timestamp = Timestamp::from_micros(1 << 60);

struct DecidedCharge<'a> {
    charge: Charge<'a>,
    entry: usize,
    units: u64,
    outcome: Outcome,
    is_left_out: bool,
    taken: Option<u64>,
}

/// Decides all charges of a request in a single step.
///
/// `entry_of` returns the position in `entries` of the charge at a position in `charges`.
///
/// 1. Drops entries that are too far in the future, and never decides earlier than the last change of an entry.
/// 2. Judges the charges, by the windows of calendar quotas [at](Quota::at) this instant.
/// 3. Moves a hold behind all changes by a microsecond, because its instant identifies the hold. A forced hold moves
///    before the judgement, and other holds after an admission.
/// 4. Takes the charges of an admitted request, except shadows that do not fit, and forced charges in any case.
///
/// A refused request and a report convert a state to their quota, because the new rate applies from then on. A state
/// stays if it would be full. A state of another algorithm, or of windows with another period, also stays if the units
/// fit sooner by the old quota.
pub fn decide(
    operation: Operation,
    charges: &[Charge<'_>],
    now: Timestamp,
    entries: &mut [&mut Entry],
    entry_of: impl Fn(usize) -> usize,
) -> Decision {
    let clock = now.min(LATEST).as_micros();
    let mut now = clock;
    // A refused request takes a forced hold too, so its instant is needed before the judgement.
    let forces_hold = (operation.takes()
        || matches!(operation, Operation::Refuse | Operation::Renew { .. }))
        && charges
            .iter()
            .any(|charge| charge.is_hold() && charge.mode() == ChargeMode::Forced);
    for entry in entries.iter_mut() {
        // A wrong clock may have written the entry. Without this rule, it would block its clients
        // until the clock catches up.
        if entry.is_from_the_future(clock) {
            **entry = Entry::default();
        }
        now = now.max(entry.at + u64::from(forces_hold));
    }
    if let Operation::Renew { taken_at } = operation
        && forces_hold
        && taken_at.as_micros() <= clock + TRUSTED_LEAD
    {
        // A lost entry was as late as its holds.
        now = now.max(taken_at.as_micros());
    }
    let at = Timestamp::from_micros(now);
    // Resolve calendar windows here, because every charge must use the store's instant.
    let windows: SmallVec<[Quota; 4]> =
        charges.iter().map(|charge| charge.quota().at(at)).collect();
    let mut parts: SmallVec<[DecidedCharge<'_>; 4]> = SmallVec::new();
    for (position, (charge, window)) in charges.iter().zip(&windows).enumerate() {
        parts.push(DecidedCharge {
            charge: charge.with_quota(window),
            entry: entry_of(position),
            units: charge.units(),
            outcome: Outcome::Allow,
            is_left_out: false,
            taken: None,
        });
    }
    if operation.judges() {
        judge(operation, &mut parts, now, entries);
    }
    let refuses = |part: &DecidedCharge<'_>| part.outcome.is_refusal() && !part.charge.is_shadow();
    let is_refused = operation == Operation::Refuse || parts.iter().any(refuses);
    if operation.takes() && !is_refused && parts.iter().any(|part| part.charge.is_hold()) {
        // Two holds of one instant could not be told apart, so a release could end the wrong one.
        now = entries.iter().map(|entry| entry.at + 1).fold(now, u64::max);
    }
    for part in &mut parts {
        if part.charge.mode().is_report() {
            part.units = 0;
        }
        // Leave out a shadow that does not fit, but still take the other charges.
        let fits = !is_refused && !part.outcome.is_refusal();
        part.is_left_out = !fits && part.charge.mode() != ChargeMode::Forced;
        let entry = &mut *entries[part.entry];
        part.apply(operation, now, entry);
        part.strike(operation, now, entry);
    }
    for part in &parts {
        if part.taken.is_some() {
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

fn is_partial(charge: &Charge<'_>) -> bool {
    charge.is_at_most() && charge.units() > 0
}

fn judge(operation: Operation, parts: &mut [DecidedCharge<'_>], now: u64, entries: &[&mut Entry]) {
    // All partial grants of a request get the same number of units. Shadows do not reduce the
    // number.
    let mut together = u64::MAX;
    for part in parts.iter_mut().filter(|part| is_partial(&part.charge)) {
        let (left, _) = entries[part.entry].balance(&part.charge, now);
        part.units = part.units.min(left.max(0).cast_unsigned());
        if !part.charge.is_shadow() {
            together = together.min(part.units);
        }
    }
    for part in parts {
        if is_partial(&part.charge) {
            part.units = part.units.min(together).max(1);
        } else if operation == Operation::Peek {
            part.units = part.units.max(1);
        }
        part.outcome = entries[part.entry].judge(&part.charge, part.units, now);
    }
}

impl DecidedCharge<'_> {
    fn apply(&mut self, operation: Operation, now: u64, entry: &mut Entry) {
        let (charge, units) = (&self.charge, self.units);
        let (counter, quota) = (charge.counter(), charge.quota());
        let max_wait = charge.max_wait_micros();
        let changes = match operation {
            Operation::Peek => false,
            Operation::Reset => {
                // An operator who resets a client expects the penalty to end too, and holds of an earlier quota.
                for id in charge.name().counter_ids() {
                    entry.forget(id);
                }
                self.taken = Some(0);
                false
            }
            // Only holds expire, so a renewal extends nothing else.
            Operation::Renew { taken_at } => {
                let may_renew = || entry.may_refund(charge, taken_at.as_micros(), now);
                charge.is_hold() && (self.lost_units() > 0 || may_renew())
            }
            // Time or another quota may have given back the units already.
            Operation::Refund { taken_at } => {
                units > 0 && entry.may_refund(charge, taken_at.as_micros(), now)
            }
            // A report takes no units, but its retry time is a promise by the new rate.
            _ if charge.mode().is_report() => {
                entry.needs_conversion(counter, now, charge.mode().needed(units), max_wait)
            }
            // A free charge must not create an entry.
            _ if units == 0 => false,
            // The request takes units, even if a limit refuses.
            _ if !self.is_left_out || charge.counts_refusals() => true,
            // Convert even on a refusal, because otherwise the old rate would refill the counter.
            _ => entry.needs_conversion(counter, now, units, max_wait),
        };
        if !changes {
            return;
        }
        let mut taken = 0;
        entry.edit(counter, now, |state| match operation {
            Operation::Refund { taken_at } => {
                let (before, is_prepared) = (state.balance(quota, now).0, charge.is_refundable());
                state.refund(quota, now, units, taken_at.as_micros(), is_prepared);
                // Measure the refund, because a state may give back fewer units than the cost.
                let given = state.balance(quota, now).0 - before;
                taken = given.max(0).cast_unsigned();
            }
            Operation::Renew { taken_at } => {
                taken = state.renew(quota, now, taken_at.as_micros(), self.lost_units());
            }
            // The entry has converted the state, and a report takes nothing.
            _ if units == 0 => {}
            _ if !self.is_left_out => {
                taken = match charge.mode() {
                    ChargeMode::Forced => state.force(quota, now, units, charge.most_debt()),
                    _ => state.take(quota, now, units),
                };
                if charge.is_refundable() {
                    // Only refundable charges leave a mark, so that other buckets stay small.
                    state.watch(quota, now);
                }
            }
            _ if charge.counts_refusals() => state.penalise(quota, now, units, 0),
            _ => {}
        });
        self.taken = Some(taken);
    }

    /// Returns the units that a renewal takes again if the store has lost the hold.
    fn lost_units(&self) -> u64 {
        match self.charge.mode() {
            ChargeMode::Forced => self.units,
            _ => 0,
        }
    }

    fn strike(&mut self, operation: Operation, now: u64, entry: &mut Entry) {
        let counts = matches!(operation, Operation::Check | Operation::Refuse) && self.units > 0;
        let refuses = self.outcome.is_refusal();
        if let Some((counter, penalty)) = self.charge.strikes()
            && counts
            && (refuses || entry.needs_conversion(counter, now, 0, 0))
        {
            let strikes = u64::from(refuses);
            entry.edit(counter, now, |state| {
                state.penalise(counter.quota, now, strikes, penalty.most_debt());
            });
            self.taken.get_or_insert_default();
        }
    }

    fn status(&self, entry: &Entry, now: u64) -> LimitStatus {
        let charge = &self.charge;
        let (balance, reset) = entry.balance(charge, now);
        let is_counted = charge.counts_refusals() || charge.penalised_by().is_some();
        let outcome = if self.is_left_out && is_counted {
            // A counted refusal may have changed the outcome, and left fewer units for a partial grant.
            let left = balance.max(1).cast_unsigned();
            let most = if is_partial(charge) { left } else { u64::MAX };
            entry.judge(charge, self.units.min(most), now)
        } else {
            self.outcome
        };
        LimitStatus {
            name: charge.name(),
            limit: charge.quota().capacity(),
            left: Left::of_balance(balance, Duration::from_micros(reset)),
            outcome,
            taken: self.taken.unwrap_or(0),
            is_shadow: charge.is_shadow(),
        }
    }
}
