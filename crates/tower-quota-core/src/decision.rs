//! Decisions of a store.

use core::time::Duration;

use smallvec::SmallVec;

use crate::charge::{Charge, Operation};
use crate::entry::Entry;
use crate::outcome::Outcome;
use crate::status::LimitStatus;
use crate::time::Timestamp;

type Statuses = SmallVec<[LimitStatus; 3]>;

/// The answer of a store, with the outcome and the status of every limit.
///
/// Equality ignores the [entries](Self::entries). Clones have no entries and no refund.
#[derive(Debug, Default)]
pub struct Decision {
    outcome: Outcome,
    at: Timestamp,
    statuses: Statuses,
    refundable: bool,
    /// A bit for each charge whose stored state had another quota.
    converted: u32,
    #[expect(clippy::box_collection, reason = "few decisions have entries")]
    entries: Option<Box<Vec<(usize, Entry)>>>,
}

impl Decision {
    /// Creates a decision from the statuses of the limits, in the order of the charges.
    #[must_use]
    pub fn from_statuses(
        operation: Operation,
        at: Timestamp,
        statuses: impl IntoIterator<Item = LimitStatus>,
    ) -> Self {
        let mut decision = Self {
            at,
            statuses: statuses.into_iter().collect(),
            ..Self::default()
        };
        decision.outcome = decision.enforced_outcome();
        decision.refundable = operation.takes() && decision.is_allowed();
        decision
    }

    /// Adds stored entries to a refusal, for the [`RefusalCache`](crate::RefusalCache).
    ///
    /// An entry comes with the position of a charge of its key. Long logs are [abridged](Entry::abridged).
    #[must_use]
    pub fn with_entries(mut self, entries: impl IntoIterator<Item = (usize, Entry)>) -> Self {
        let abridged = |(position, entry): (usize, Entry)| (position, entry.abridged(self.at));
        let entries: Vec<(usize, Entry)> = entries.into_iter().map(abridged).collect();
        self.entries = (!entries.is_empty()).then(|| Box::new(entries));
        self
    }

    /// Returns the stored entries of a refusal.
    pub fn entries(&self) -> &[(usize, Entry)] {
        self.entries.as_deref().map_or(&[], Vec::as_slice)
    }

    /// Marks the positions of charges whose stored states had another quota.
    #[doc(hidden)]
    #[must_use]
    pub fn with_converted(mut self, positions: impl IntoIterator<Item = usize>) -> Self {
        for position in positions {
            if position < Charge::MOST {
                self.converted |= 1 << position;
            }
        }
        self
    }

    #[doc(hidden)]
    pub fn converted(&self) -> impl Iterator<Item = usize> {
        let charges = match self.converted {
            0 => 0,
            _ => self.statuses.len().min(Charge::MOST),
        };
        (0..charges).filter(|position| self.converted >> position & 1 == 1)
    }

    // Write the fields in place, because a decision is large.
    pub(crate) fn replace(
        &mut self,
        is_admitted: bool,
        at: Timestamp,
        statuses: impl Iterator<Item = LimitStatus>,
    ) {
        self.at = at;
        self.converted = 0;
        self.entries = None;
        self.refundable = is_admitted;
        self.statuses.clear();
        for status in statuses {
            self.statuses.push(status);
        }
        self.outcome = if is_admitted {
            Outcome::Allow
        } else {
            self.enforced_outcome()
        };
    }

    /// Returns the outcome.
    pub const fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// Returns whether the request may pass, now or after a wait.
    #[must_use]
    #[inline]
    pub const fn is_allowed(&self) -> bool {
        !self.outcome.is_refusal()
    }

    /// Returns the wait of an allowed request, possibly zero.
    pub const fn wait(&self) -> Duration {
        match self.outcome {
            Outcome::Wait(wait) => wait,
            _ => Duration::ZERO,
        }
    }

    /// Returns the wait of a refused request, unless the request can never pass.
    pub const fn retry_after(&self) -> Option<Duration> {
        match self.outcome {
            Outcome::Refuse(retry) => Some(retry),
            _ => None,
        }
    }

    /// Returns the instant of the decision on the clock of the store.
    pub const fn at(&self) -> Timestamp {
        self.at
    }

    /// Returns all statuses, including shadows, in the order of the charges.
    pub fn statuses(&self) -> &[LimitStatus] {
        &self.statuses
    }

    /// Returns the status of a limit by name, if the request had the limit.
    pub fn status(&self, limit: &str) -> Option<&LimitStatus> {
        self.statuses
            .iter()
            .find(|status| status.name.as_str() == limit)
    }

    /// Returns the statuses of the enforced limits, which you may show your clients.
    pub fn enforced(&self) -> impl Iterator<Item = &LimitStatus> {
        self.statuses.iter().filter(|status| !status.is_shadow)
    }

    /// Returns the statuses of the shadows that would have refused the request.
    pub fn would_refuse(&self) -> impl Iterator<Item = &LimitStatus> {
        self.statuses
            .iter()
            .filter(|status| status.is_shadow && status.outcome.is_refusal())
    }

    /// Returns the status of the tightest enforced limit, if any.
    ///
    /// A refusal has the longest wait. Otherwise, the fewest remaining units decide, and then the longest time to reset.
    #[doc(alias = "binding")]
    pub fn tightest(&self) -> Option<&LimitStatus> {
        self.enforced()
            .max_by(|one, other| one.cmp_tightness(other))
    }

    /// Returns the refund of an admitted decision. The second call returns `None`.
    ///
    /// Apply the refund to charges of the same quotas and at most the units [`taken`](LimitStatus::taken).
    #[must_use]
    pub fn refund(&mut self) -> Option<Operation> {
        core::mem::take(&mut self.refundable).then_some(Operation::Refund { taken_at: self.at })
    }

    fn enforced_outcome(&self) -> Outcome {
        self.enforced()
            .map(|status| status.outcome)
            .max()
            .unwrap_or_default()
    }
}

impl Clone for Decision {
    fn clone(&self) -> Self {
        Self {
            outcome: self.outcome,
            at: self.at,
            statuses: self.statuses.clone(),
            // The clone has no refund, because two refunds would give the units back twice.
            ..Self::default()
        }
    }
}

impl PartialEq for Decision {
    fn eq(&self, other: &Self) -> bool {
        self.outcome == other.outcome
            && self.at == other.at
            && self.statuses == other.statuses
            && self.refundable == other.refundable
    }
}

impl Eq for Decision {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::Left;

    fn statuses(count: usize) -> impl Iterator<Item = LimitStatus> {
        let status = LimitStatus {
            name: "minute".into(),
            limit: 5,
            left: Left::new(5, Duration::ZERO),
            taken: 0,
            outcome: Outcome::Allow,
            is_shadow: false,
        };
        core::iter::repeat_n(status, count)
    }

    #[test]
    fn many_statuses_have_few_converted_positions() {
        let (operation, at) = (Operation::Check, Timestamp::EPOCH);
        let decision = Decision::from_statuses(operation, at, statuses(40));
        assert_eq!(decision.converted().count(), 0);
        let decision = decision.with_converted([1, 31, 32, 39]);
        assert!(decision.converted().eq([1, 31]));
    }

    #[test]
    fn replaced_decision_has_no_converted_positions() {
        let (operation, at) = (Operation::Check, Timestamp::EPOCH);
        let mut decision = Decision::from_statuses(operation, at, statuses(2)).with_converted([1]);
        decision.replace(true, at, statuses(2));
        assert_eq!(decision.converted().count(), 0);
    }
}
