//! Decisions, the answers of a store.

use core::fmt;
use core::time::Duration;

use smallvec::SmallVec;

use crate::charge::Operation;
use crate::entry::Entry;
use crate::outcome::Outcome;
use crate::status::LimitStatus;
use crate::time::Timestamp;

type Statuses = SmallVec<[LimitStatus; 3]>;

/// The answer of a store to a request, with an outcome and the status of each limit.
///
/// `Debug` and equality ignore the [entries](Self::entries). A clone has no entries and no refund.
pub struct Decision {
    outcome: Outcome,
    at: Timestamp,
    statuses: Statuses,
    refundable: bool,
    /// Boxed twice, because few decisions have entries.
    #[expect(clippy::box_collection, reason = "a decision grows by one pointer")]
    entries: Option<Box<Vec<(usize, Entry)>>>,
}

impl Decision {
    /// Creates a decision from the statuses of a request's limits, in the order of the charges.
    ///
    /// The [tightest](Self::tightest) enforced limit determines the outcome. You can refund only a check or a charge.
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

    /// Adds the stored entries of a refused request, each with the position of a charge on the same key.
    ///
    /// A [`RefusalCache`](crate::RefusalCache) then refuses further requests without a call. The instant of an entry is the later one
    /// of the entry's and the decision's instant. Long sliding logs are [abridged](Entry::abridged).
    #[must_use]
    pub fn with_entries(mut self, entries: impl IntoIterator<Item = (usize, Entry)>) -> Self {
        let abridged = |(position, entry): (usize, Entry)| (position, entry.abridged(self.at));
        let entries: Vec<(usize, Entry)> = entries.into_iter().map(abridged).collect();
        self.entries = (!entries.is_empty()).then(|| Box::new(entries));
        self
    }

    /// Returns the entries of a refusal, each with the position of a charge on the same key.
    #[must_use]
    pub fn entries(&self) -> &[(usize, Entry)] {
        self.entries.as_deref().map_or(&[], Vec::as_slice)
    }

    /// Overwrites the decision on a check in place, because a decision is large.
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

    /// Returns whether your request passes, waits or is refused.
    #[must_use]
    pub const fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// Returns whether your request may pass, at once or after a wait.
    #[must_use]
    #[inline]
    pub const fn is_allowed(&self) -> bool {
        !self.outcome.is_refusal()
    }

    /// Returns the wait of an allowed request, or zero.
    #[must_use]
    pub const fn wait(&self) -> Duration {
        match self.outcome {
            Outcome::Wait(wait) => wait,
            _ => Duration::ZERO,
        }
    }

    /// Returns the wait until a refused request fits. `None` if allowed, or if the request can never pass.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self.outcome {
            Outcome::Refuse(retry) => Some(retry),
            _ => None,
        }
    }

    /// Returns the instant of the decision on the clock of the store.
    #[must_use]
    pub const fn at(&self) -> Timestamp {
        self.at
    }

    /// Returns the status of each limit, including shadows, in the order of the charges.
    #[must_use]
    pub fn statuses(&self) -> &[LimitStatus] {
        &self.statuses
    }

    /// Returns the status of a limit of the request.
    #[must_use]
    pub fn status(&self, limit: &str) -> Option<&LimitStatus> {
        self.statuses
            .iter()
            .find(|status| status.name.as_str() == limit)
    }

    /// Returns the statuses of the enforced limits, in the order of the charges. Clients may see them.
    pub fn enforced(&self) -> impl Iterator<Item = &LimitStatus> {
        self.statuses.iter().filter(|status| !status.is_shadow)
    }

    /// Returns the statuses of the shadow limits that would have refused the request.
    pub fn would_refuse(&self) -> impl Iterator<Item = &LimitStatus> {
        self.statuses
            .iter()
            .filter(|status| status.is_shadow && status.outcome.is_refusal())
    }

    /// Returns the status of the tightest enforced limit.
    ///
    /// The tightest limit of a refusal has the longest wait. Otherwise, the tightest limit has the fewest remaining units, and then
    /// the longest time until reset.
    #[must_use]
    #[doc(alias = "binding")]
    pub fn tightest(&self) -> Option<&LimitStatus> {
        self.enforced().max_by(|one, other| {
            one.outcome
                .severity()
                .cmp(&other.outcome.severity())
                .then(other.remaining().cmp(&one.remaining()))
                .then(one.reset_after().cmp(&other.reset_after()))
                // The order of the limits does not matter.
                .then(other.name.cmp(&one.name))
        })
    }

    /// Returns the operation that gives the units of the decision back. You can call `refund` once.
    ///
    /// Apply the operation to charges of the same quotas and of at most the [`taken`](LimitStatus::taken) units. A refusal and a
    /// clone have no refund.
    #[must_use]
    pub fn refund(&mut self) -> Option<Operation> {
        core::mem::take(&mut self.refundable).then_some(Operation::Refund { taken_at: self.at })
    }
}

impl Default for Decision {
    /// Returns the decision on a request without charges.
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
    /// Clones without the entries and the refund, which stay with the original.
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

fn outcome_of(statuses: &[LimitStatus]) -> Outcome {
    let enforced = statuses.iter().filter(|status| !status.is_shadow);
    enforced
        .map(|status| status.outcome)
        .fold(Outcome::Allow, Outcome::max)
}
