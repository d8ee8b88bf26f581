//! The decision over several subjects: the model every store follows.

use core::time::Duration;

use smallvec::SmallVec;

use crate::algorithm::Verdict;
use crate::charge::{Charge, Operation};
use crate::decision::Decision;
use crate::entry::Entry;
use crate::quota::MOST_GRAINS;
use crate::status::{Left, LimitStatus};
use crate::time::Timestamp;

/// More units than this are taken as this many: no state remembers more.
const MOST_TAKEN: u64 = 2 * MOST_GRAINS;

/// What one charge asks for, and what its limit says of it.
struct Ask {
    units: u64,
    verdict: Verdict,
}

/// Decides all charges of a request in one step: pure but for the subjects it is given, and charged either whole or
/// not at all. A shadow charge is taken if the others are and it fits itself.
///
/// `subject_of` tells the position in `subjects` of the charge at a position in `charges`. Should `now` lie before an
/// instant that one of the subjects already knows, that instant is taken instead: a clock that runs backwards changes
/// nothing. A refused request and a peek leave the subjects exactly as they were, but for one thing: a request that
/// meets a state counted by another quota of its limit converts it, admitted or not, for the new rate holds from there.
pub fn decide(
    operation: Operation,
    charges: &[Charge<'_>],
    now: Timestamp,
    subjects: &mut [&mut Entry],
    subject_of: impl Fn(usize) -> usize,
) -> Decision {
    let now = subjects.iter().map(|subject| subject.at().as_micros()).fold(now.as_micros(), u64::max);
    let asks = asks(operation, charges, now, subjects, &subject_of);
    let refused = operation == Operation::Refuse
        || charges.iter().zip(&asks).any(|(charge, ask)| !charge.is_shadow() && !ask.verdict.admits());
    // An enforced charge that does not fit refuses the request, so this is about shadows, and about everybody else.
    let stays_out = |ask: &Ask| refused || !ask.verdict.admits();

    for (i, (charge, ask)) in charges.iter().zip(&asks).enumerate() {
        let subject = &mut *subjects[subject_of(i)];
        change(operation, charge, ask.units, stays_out(ask), now, subject);
        strike(operation, charge, ask.units, stays_out(ask), now, subject);
    }
    subjects.iter_mut().for_each(|subject| subject.settle());

    let standings = charges.iter().zip(&asks).enumerate().map(|(i, (charge, ask))| {
        let subject = &*subjects[subject_of(i)];
        // A refusal that was counted may have changed what the limit says.
        let is_counted = charge.counts_refusals() || charge.penalised_by().is_some();
        let verdict = match stays_out(ask) && is_counted {
            true => subject.judge(charge, ask.units, now),
            false => ask.verdict,
        };
        let taken = match operation {
            Operation::Check if stays_out(ask) => 0,
            Operation::Check | Operation::Charge => ask.units.min(MOST_TAKEN),
            _ => 0,
        };
        let (remaining, reset) = subject.left(charge, now);
        LimitStatus {
            name: charge.name(),
            limit: charge.quota().capacity(),
            left: Left::new(remaining, Duration::from_micros(reset)),
            outcome: verdict.into(),
            taken,
            is_shadow: charge.is_shadow(),
        }
    });
    Decision::from_statuses(operation, Timestamp::from_micros(now), standings)
}

/// Takes from what a charge's limit counts, or gives back.
fn change(operation: Operation, charge: &Charge<'_>, units: u64, stays_out: bool, now: u64, subject: &mut Entry) {
    let counter = charge.counter();
    let changes = match operation {
        Operation::Reset => true,
        _ if stays_out => units > 0 && (charge.counts_refusals() || subject.counts_otherwise(counter)),
        _ => units > 0,
    };
    if !changes {
        return;
    }
    subject.advance(now);
    match operation {
        Operation::Reset => subject.forget(counter),
        Operation::Refund { taken_at } => subject.edit(counter, now, |state| {
            state.give_back(counter.quota, taken_at.as_micros(), units);
        }),
        _ if stays_out => subject.edit(counter, now, |state| {
            if charge.counts_refusals() {
                state.penalise(counter.quota, now, units);
            }
        }),
        _ => subject.edit(counter, now, |state| state.take(counter.quota, now, units)),
    }
}

/// Adds to the client's strikes, if refusals cost him any, or forgets them.
fn strike(operation: Operation, charge: &Charge<'_>, units: u64, stays_out: bool, now: u64, subject: &mut Entry) {
    let Some((counter, penalty)) = charge.strikes() else { return };
    if operation == Operation::Reset {
        subject.forget(counter);
    } else if operation.judges() && units > 0 && (stays_out || subject.counts_otherwise(counter)) {
        subject.advance(now);
        subject.edit(counter, now, |state| {
            if stays_out {
                state.strike(counter.quota, penalty.most_debt());
            }
        });
    }
}

fn asks(
    operation: Operation,
    charges: &[Charge<'_>],
    now: u64,
    subjects: &[&mut Entry],
    subject_of: impl Fn(usize) -> usize,
) -> SmallVec<[Ask; 4]> {
    let left = |i: usize| subjects[subject_of(i)].left(&charges[i], now).0;
    let takes_what_is_left = |charge: &Charge<'_>| operation.judges() && charge.is_at_most() && charge.units() > 0;
    // What all charges that take at most their cost take together. Shadows have no say in it.
    let together = charges.iter().enumerate().filter(|(_, charge)| takes_what_is_left(charge) && !charge.is_shadow());
    let together = together.map(|(i, charge)| left(i).min(charge.units())).min().unwrap_or(u64::MAX);
    let ask = |(i, charge): (usize, &Charge<'_>)| {
        let units = match takes_what_is_left(charge) {
            true => left(i).min(charge.units()).min(together).max(1),
            false => charge.units(),
        };
        let verdict = match operation.judges() {
            true => subjects[subject_of(i)].judge(charge, units, now),
            false => Verdict::Admit { wait: 0 },
        };
        Ask { units, verdict }
    };
    charges.iter().enumerate().map(ask).collect()
}
