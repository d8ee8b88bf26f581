//! Subjects: everything remembered of one key.

use std::borrow::Cow;

use smallvec::SmallVec;

use crate::algorithm::{State, Verdict};
use crate::charge::{Charge, Counter, Operation};
use crate::decide::decide;
use crate::decision::Decision;
use crate::quota::Quota;
use crate::time::Timestamp;

/// What is remembered of one key: the state of each limit that counts it, all as of one instant, that of the last
/// charge. A subject that was never seen and one whose limits are all whole again are the same thing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    pub(crate) at: u64,
    pub(crate) slots: SmallVec<[Slot; 2]>,
}

/// What is remembered of one limit: what it has counted, and by which quota.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) limit: u32,
    pub(crate) quota: Quota,
    pub(crate) state: State,
}

impl Entry {
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

    /// Forgets the instant of a subject that has nothing else to remember: as if it had never been seen.
    pub(crate) fn settle(&mut self) {
        if self.is_empty() {
            self.at = 0;
        }
    }

    /// What a charge's limit says of this many units.
    pub(crate) fn judge(&self, charge: &Charge<'_>, units: u64, now: u64) -> Verdict {
        let (state, from) = self.state_for(charge.counter(), now);
        let verdict = state.judge(charge.quota(), from, now, units, charge.patience_micros());
        if units > 0 { verdict.closed_for(self.blocked(charge, now)) } else { verdict }
    }

    /// Whole units that a charge's limit has left, and microseconds until all are back. It has none while the client is
    /// blocked.
    pub(crate) fn left(&self, charge: &Charge<'_>, now: u64) -> (u64, u64) {
        let (state, from) = self.state_for(charge.counter(), now);
        let (remaining, reset) = state.left(charge.quota(), from, now);
        match self.blocked(charge, now) {
            0 => (remaining, reset),
            blocked => (0, reset.max(blocked)),
        }
    }

    /// Microseconds for which a charge's limit is closed to the client for his strikes.
    fn blocked(&self, charge: &Charge<'_>, now: u64) -> u64 {
        charge.strikes().map_or(0, |(counter, _)| {
            let (state, from) = self.state_for(counter, now);
            state.until_paid(counter.quota, from, now)
        })
    }

    /// The state that a counter is at, and the instant it is as of.
    fn state_for(&self, counter: Counter<'_>, now: u64) -> (Cow<'_, State>, u64) {
        match self.slots.iter().find(|slot| slot.limit == counter.id) {
            Some(slot) if slot.quota.counts_like(counter.quota) => (Cow::Borrowed(&slot.state), self.at),
            Some(slot) => (Cow::Owned(slot.state.convert(&slot.quota, counter.quota, self.at, now)), now),
            None => (Cow::Owned(State::fresh(counter.quota, now)), now),
        }
    }

    /// Whether a counter was counted by another quota.
    pub(crate) fn counts_otherwise(&self, counter: Counter<'_>) -> bool {
        self.slots.iter().any(|slot| slot.limit == counter.id && !slot.quota.counts_like(counter.quota))
    }

    /// Moves every limit to `now` and forgets those that are whole: limits that are no longer asked for fade away.
    pub(crate) fn advance(&mut self, now: u64) {
        let from = self.at;
        self.slots.retain(|slot| {
            slot.state.advance(&slot.quota, from, now);
            slot.state.left(&slot.quota, now, now).1 > 0
        });
        self.at = now;
    }

    /// Changes the state of a counter, in a subject that is as of `now`.
    pub(crate) fn edit(&mut self, counter: Counter<'_>, now: u64, change: impl FnOnce(&mut State)) {
        let (state, _) = self.state_for(counter, now);
        let mut state = state.into_owned();
        change(&mut state);
        self.forget(counter);
        if state.left(counter.quota, now, now).1 > 0 {
            self.slots.push(Slot { limit: counter.id, quota: *counter.quota, state });
        }
    }

    pub(crate) fn forget(&mut self, counter: Counter<'_>) {
        self.slots.retain(|slot| slot.limit != counter.id);
    }
}
