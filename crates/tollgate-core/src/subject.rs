//! Subjects: everything remembered of one key, and the decision over several of them. The model every store follows.

use core::time::Duration;
use std::borrow::Cow;

use smallvec::SmallVec;

use crate::algorithm::{State, Verdict};
use crate::charge::{Charge, Operation};
use crate::decision::{Decision, Standing, Standings};
use crate::quota::Quota;
use crate::time::Timestamp;

/// What is remembered of one key: the state of each limit that counts it, all as of one instant, that of the last
/// charge. A subject that was never seen and one whose limits are all whole again are the same thing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    at: u64,
    slots: SmallVec<[Slot; 2]>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Slot {
    limit: u32,
    quota: Quota,
    state: State,
}

/// Decides all charges of a request in one step: pure but for the subjects it is given, and charged either whole or
/// not at all.
///
/// `subject_of` tells the position in `subjects` of the charge at a position in `charges`. Should `now` lie before an
/// instant that one of the subjects already knows, that instant is taken instead: a clock that runs backwards changes
/// nothing. A refused request and a peek leave the subjects exactly as they were, but for one thing: a request that
/// meets a state counted by another quota of its limit converts it, admitted or not, for the new rate holds from there.
pub fn decide(
    operation: Operation,
    charges: &[Charge<'_>],
    now: Timestamp,
    subjects: &mut [&mut Subject],
    subject_of: impl Fn(usize) -> usize,
) -> Decision {
    let now = subjects.iter().map(|subject| subject.at).fold(now.as_micros(), u64::max);
    let verdicts: SmallVec<[Verdict; 4]> = charges
        .iter()
        .enumerate()
        .map(|(i, charge)| match operation {
            Operation::Check | Operation::Refuse => subjects[subject_of(i)].judge(charge, now),
            _ => Verdict::Admit { wait: 0 },
        })
        .collect();
    let refused =
        operation == Operation::Refuse || !verdicts.iter().all(|verdict| matches!(verdict, Verdict::Admit { .. }));

    for (i, charge) in charges.iter().enumerate() {
        let subject = &mut *subjects[subject_of(i)];
        let changes = match operation {
            Operation::Check | Operation::Refuse if refused => {
                charge.units() > 0 && (charge.counts_refusals() || subject.counts_otherwise(charge))
            }
            Operation::Reset => true,
            _ => charge.units() > 0,
        };
        if !changes {
            continue;
        }
        subject.advance(now);
        match operation {
            Operation::Check | Operation::Refuse if refused => subject.edit(charge, now, |state| {
                if charge.counts_refusals() {
                    state.penalise(charge.quota(), now, charge.units());
                }
            }),
            Operation::Check | Operation::Refuse | Operation::Charge => subject.edit(charge, now, |state| {
                state.take(charge.quota(), now, charge.units());
            }),
            Operation::Refund { taken_at } => subject.edit(charge, now, |state| {
                state.give_back(charge.quota(), taken_at.as_micros(), charge.units());
            }),
            Operation::Reset => subject.forget(charge),
        }
    }
    for subject in subjects.iter_mut().filter(|subject| subject.is_empty()) {
        // Nothing to remember, not even the instant: as if it had never been seen.
        subject.at = 0;
    }

    let standings: Standings = charges
        .iter()
        .zip(&verdicts)
        .enumerate()
        .map(|(i, (charge, verdict))| {
            let subject = &*subjects[subject_of(i)];
            let verdict = if refused && charge.counts_refusals() { &subject.judge(charge, now) } else { verdict };
            subject.standing(charge, now, *verdict)
        })
        .collect();
    Decision::from_standings(operation, Timestamp::from_micros(now), standings)
}

impl Subject {
    /// [`decide`] for charges that all count this subject.
    pub fn decide(&mut self, operation: Operation, charges: &[Charge<'_>], now: Timestamp) -> Decision {
        decide(operation, charges, now, &mut [self], |_| 0)
    }

    /// When every limit will be whole again, if nothing else is charged: from then on this subject may be forgotten.
    #[must_use]
    pub fn whole_at(&self) -> Timestamp {
        let longest = self.slots.iter().map(|slot| slot.state.left(&slot.quota, self.at, self.at).1).max();
        Timestamp::from_micros(self.at + longest.unwrap_or(0))
    }

    /// The instant of the last charge.
    pub(crate) const fn at(&self) -> Timestamp {
        Timestamp::from_micros(self.at)
    }

    /// Whether some limit has nothing left at `now`: forgetting this subject would set a limited client free.
    #[must_use]
    pub fn is_limited(&self, now: Timestamp) -> bool {
        let now = now.as_micros().max(self.at);
        self.slots.iter().any(|slot| slot.state.left(&slot.quota, self.at, now).0 == 0)
    }

    /// Whether there is nothing to remember.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    fn judge(&self, charge: &Charge<'_>, now: u64) -> Verdict {
        let (state, from) = self.state_for(charge, now);
        state.judge(charge.quota(), from, now, charge.units(), charge.patience_micros())
    }

    fn standing(&self, charge: &Charge<'_>, now: u64, verdict: Verdict) -> Standing {
        let (state, from) = self.state_for(charge, now);
        let (remaining, reset) = state.left(charge.quota(), from, now);
        Standing {
            name: charge.name(),
            limit: charge.quota().capacity(),
            remaining,
            reset_after: Duration::from_micros(reset),
            outcome: verdict.into(),
        }
    }

    /// The state a charge is decided on, and the instant it is as of.
    fn state_for(&self, charge: &Charge<'_>, now: u64) -> (Cow<'_, State>, u64) {
        match self.slots.iter().find(|slot| slot.limit == charge.name().id()) {
            Some(slot) if slot.quota.counts_like(charge.quota()) => (Cow::Borrowed(&slot.state), self.at),
            Some(slot) => (Cow::Owned(slot.state.convert(&slot.quota, charge.quota(), self.at, now)), now),
            None => (Cow::Owned(State::fresh(charge.quota(), now)), now),
        }
    }

    /// Whether a charge's limit was counted by another quota.
    fn counts_otherwise(&self, charge: &Charge<'_>) -> bool {
        self.slots.iter().any(|slot| slot.limit == charge.name().id() && !slot.quota.counts_like(charge.quota()))
    }

    /// Moves every limit to `now` and forgets those that are whole: limits that are no longer asked for fade away.
    fn advance(&mut self, now: u64) {
        let from = self.at;
        self.slots.retain(|slot| {
            slot.state.advance(&slot.quota, from, now);
            slot.state.left(&slot.quota, now, now).1 > 0
        });
        self.at = now;
    }

    /// Changes the state of a charge's limit, in a subject that is as of `now`.
    fn edit(&mut self, charge: &Charge<'_>, now: u64, change: impl FnOnce(&mut State)) {
        let (state, _) = self.state_for(charge, now);
        let mut state = state.into_owned();
        change(&mut state);
        self.forget(charge);
        if state.left(charge.quota(), now, now).1 > 0 {
            self.slots.push(Slot { limit: charge.name().id(), quota: *charge.quota(), state });
        }
    }

    fn forget(&mut self, charge: &Charge<'_>) {
        self.slots.retain(|slot| slot.limit != charge.name().id());
    }
}
