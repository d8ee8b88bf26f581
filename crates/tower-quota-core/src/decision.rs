//! Decisions: the answers of a store.

use core::fmt;
use core::time::Duration;

use smallvec::SmallVec;

use crate::charge::Operation;
use crate::entry::Entry;
use crate::outcome::Outcome;
use crate::status::LimitStatus;
use crate::time::Timestamp;

/// The statuses of a decision, up to three of them without an allocation.
type Statuses = SmallVec<[LimitStatus; 3]>;

/// The answer of a store to one request: the outcome, and the status of each limit.
///
/// Equality and `Debug` ignore its [entries](Self::entries). A clone has no entries, and no refund.
pub struct Decision {
    outcome: Outcome,
    at: Timestamp,
    statuses: Statuses,
    refundable: bool,
    /// Boxed twice, since few decisions have entries.
    #[expect(clippy::box_collection, reason = "a decision grows by one pointer")]
    entries: Option<Box<Vec<(usize, Entry)>>>,
}

impl Decision {
    /// Makes a decision from the statuses of a request's limits, in the order of its charges.
    ///
    /// The outcome is that of the [tightest](Self::tightest) enforced limit. Only what a check or a charge took can be
    /// refunded.
    #[must_use]
    pub fn from_statuses(
        operation: Operation,
        at: Timestamp,
        statuses: impl IntoIterator<Item = LimitStatus>,
    ) -> Self {
        let statuses: Statuses = statuses.into_iter().collect();
        let outcome = outcome_of(&statuses);
        let took = operation.takes() && !outcome.is_refusal();
        Self {
            outcome,
            at,
            statuses,
            refundable: took,
            entries: None,
        }
    }

    /// Adds the stored entries of a refused request's keys, each with the position of a charge of its key.
    ///
    /// A [`RefusalCache`](crate::RefusalCache) then refuses further requests without a call. An entry is as of the
    /// decision's instant or its own, whichever is later. Long sliding logs are [abridged](Entry::abridged).
    #[must_use]
    pub fn with_entries(mut self, entries: impl IntoIterator<Item = (usize, Entry)>) -> Self {
        let abridged = |(position, entry): (usize, Entry)| (position, entry.abridged(self.at));
        let entries: Vec<(usize, Entry)> = entries.into_iter().map(abridged).collect();
        self.entries = (!entries.is_empty()).then(|| Box::new(entries));
        self
    }

    /// Returns the entries that came with a refusal, each with the position of a charge of its key.
    #[must_use]
    pub fn entries(&self) -> &[(usize, Entry)] {
        self.entries.as_deref().map_or(&[], Vec::as_slice)
    }

    /// Replaces the decision by that on a check, in place, because a decision is large.
    pub(crate) fn replace(
        &mut self,
        is_admitted: bool,
        at: Timestamp,
        statuses: impl Iterator<Item = LimitStatus>,
    ) {
        self.at = at;
        self.entries = None;
        self.refundable = is_admitted;
        self.statuses.clear();
        for status in statuses {
            self.statuses.push(status);
        }
        self.outcome = if is_admitted {
            Outcome::Allow
        } else {
            outcome_of(&self.statuses)
        };
    }

    /// Returns the outcome: the request passes, waits or is refused.
    #[must_use]
    pub const fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// Returns whether the request may pass, at once or after a wait.
    #[must_use]
    #[inline]
    pub const fn is_allowed(&self) -> bool {
        !self.outcome.is_refusal()
    }

    /// Returns the wait of an allowed request; zero if it may pass at once.
    #[must_use]
    pub const fn wait(&self) -> Duration {
        match self.outcome {
            Outcome::Wait(wait) => wait,
            _ => Duration::ZERO,
        }
    }

    /// Returns the wait after which a refused request fits; `None` if it was allowed, or can never pass.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self.outcome {
            Outcome::Refuse(retry) => Some(retry),
            _ => None,
        }
    }

    /// Returns the instant of the decision, on the clock of the side that holds the state.
    #[must_use]
    pub const fn at(&self) -> Timestamp {
        self.at
    }

    /// Returns the status of each limit, shadows included, in the order of the charges.
    #[must_use]
    pub fn statuses(&self) -> &[LimitStatus] {
        &self.statuses
    }

    /// Returns the status of the limit of this name, if the request had it.
    #[must_use]
    pub fn status(&self, limit: &str) -> Option<&LimitStatus> {
        self.statuses
            .iter()
            .find(|status| status.name.as_str() == limit)
    }

    /// Returns the statuses of the enforced limits, in the order of the charges: what clients may see.
    pub fn enforced(&self) -> impl Iterator<Item = &LimitStatus> {
        self.statuses.iter().filter(|status| !status.is_shadow)
    }

    /// Returns the statuses of the shadow limits that would have refused the request.
    pub fn would_refuse(&self) -> impl Iterator<Item = &LimitStatus> {
        self.statuses
            .iter()
            .filter(|status| status.is_shadow && status.outcome.is_refusal())
    }

    /// Returns the status of the tightest enforced limit; `None` if the request had no limit.
    ///
    /// Of a refusal it is the limit with the longest wait, otherwise the one with the fewest units left, and of those
    /// the one that takes longest to reset.
    #[must_use]
    #[doc(alias = "binding")]
    pub fn tightest(&self) -> Option<&LimitStatus> {
        self.enforced().max_by(|one, other| {
            one.outcome
                .severity()
                .cmp(&other.outcome.severity())
                .then(other.remaining().cmp(&one.remaining()))
                .then(one.reset_after().cmp(&other.reset_after()))
                // The order of the limits must not matter.
                .then(other.name.cmp(&one.name))
        })
    }

    /// Returns the operation that gives back what this decision took, once.
    ///
    /// Apply it to charges of the same quotas that cost at most the units [`taken`](LimitStatus::taken). A refusal has
    /// nothing to give back. A clone of a decision has no refund.
    #[must_use]
    pub fn refund(&mut self) -> Option<Operation> {
        core::mem::take(&mut self.refundable).then_some(Operation::Refund { taken_at: self.at })
    }
}

impl Default for Decision {
    /// Returns the decision on no charges.
    fn default() -> Self {
        Self {
            outcome: Outcome::Allow,
            at: Timestamp::EPOCH,
            statuses: Statuses::new(),
            refundable: false,
            entries: None,
        }
    }
}

impl Clone for Decision {
    /// Clones all but the entries, and the right to a refund, which stays with the original.
    fn clone(&self) -> Self {
        Self {
            outcome: self.outcome,
            at: self.at,
            statuses: self.statuses.clone(),
            refundable: false,
            entries: None,
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

impl fmt::Debug for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decision")
            .field("outcome", &self.outcome)
            .field("at", &self.at)
            .field("statuses", &self.statuses)
            .field("refundable", &self.refundable)
            .finish()
    }
}

/// Returns the outcome of a request with these statuses: that of the tightest enforced limit.
fn outcome_of(statuses: &[LimitStatus]) -> Outcome {
    let enforced = statuses.iter().filter(|status| !status.is_shadow);
    enforced
        .map(|status| status.outcome)
        .fold(Outcome::Allow, Outcome::or)
}
