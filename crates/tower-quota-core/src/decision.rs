//! Decisions: what a store answers.

use core::time::Duration;

use crate::charge::Operation;
use crate::status::LimitStatus;
use crate::statuses::Statuses;
use crate::time::Timestamp;

/// What a store says of one request: may it pass, which limit binds, and how each limit stands now.
#[derive(Debug, PartialEq, Eq)]
pub struct Decision {
    outcome: Outcome,
    at: Timestamp,
    standings: Statuses,
    refundable: bool,
}

/// May it pass?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Yes, at once.
    Allow,
    /// Yes, after this wait. The charges are taken; the place is kept.
    Wait(Duration),
    /// Not now. Waiting exactly this long, alone, is admitted; one microsecond less is not.
    Refuse(Duration),
    /// Never: a cost is above its limit's capacity.
    Never,
}

impl Decision {
    /// A decision from the standings of a request's limits, in the order of its charges: the outcome is that of the
    /// enforced limit that binds. Only what a check or a charge took can be refunded.
    #[must_use]
    pub fn from_statuses(
        operation: Operation,
        at: Timestamp,
        standings: impl IntoIterator<Item = LimitStatus>,
    ) -> Self {
        let standings: Statuses = standings.into_iter().collect();
        let outcome = Outcome::of(&standings);
        let took = matches!(operation, Operation::Check | Operation::Charge) && !outcome.is_refusal();
        Self { outcome, at, standings, refundable: took }
    }

    /// Makes it that on a check which every limit admits at once.
    #[inline]
    pub(crate) fn admit(&mut self, at: Timestamp, standings: Statuses) {
        self.standings = standings;
        (self.outcome, self.at, self.refundable) = (Outcome::Allow, at, true);
    }

    /// Makes it that on a check which some limit does not admit.
    #[inline]
    pub(crate) fn refuse(&mut self, at: Timestamp, standings: Statuses) {
        self.admit(at, standings);
        self.refuse_instead();
    }

    fn refuse_instead(&mut self) {
        (self.outcome, self.refundable) = (Outcome::of(&self.standings), false);
    }

    /// May it pass?
    #[must_use]
    pub const fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// Whether the request may pass, at once or after a wait.
    #[must_use]
    #[inline]
    pub const fn is_allowed(&self) -> bool {
        !self.outcome.is_refusal()
    }

    /// How long an allowed request has to wait; zero when it need not.
    #[must_use]
    pub const fn wait(&self) -> Duration {
        match self.outcome {
            Outcome::Wait(wait) => wait,
            _ => Duration::ZERO,
        }
    }

    /// How long a refused request has to wait before it is admitted; `None` when allowed, or when it never will be.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self.outcome {
            Outcome::Refuse(retry) => Some(retry),
            _ => None,
        }
    }

    /// The instant of the decision, on the clock of whoever holds the state.
    #[must_use]
    pub const fn at(&self) -> Timestamp {
        self.at
    }

    /// Each limit's standing, in the order of the charges, those of shadow limits among them.
    #[must_use]
    pub fn statuses(&self) -> &[LimitStatus] {
        &self.standings
    }

    /// The standing of the limit of this name, if the request had it.
    #[must_use]
    pub fn status(&self, limit: &str) -> Option<&LimitStatus> {
        self.standings.iter().find(|standing| standing.name.as_str() == limit)
    }

    /// The standings of the limits that are enforced, in the order of the charges: what clients are told.
    pub fn enforced(&self) -> impl Iterator<Item = &LimitStatus> {
        self.standings.iter().filter(|standing| !standing.is_shadow)
    }

    /// The standings of the shadow limits that would have refused the request.
    pub fn would_refuse(&self) -> impl Iterator<Item = &LimitStatus> {
        self.standings.iter().filter(|standing| standing.is_shadow && standing.outcome.is_refusal())
    }

    /// The enforced limit that binds. Of a refusal: the one with the longest wait. Otherwise: the one with the fewest units
    /// left, of those the one that takes longest to be whole. `None` when the request had none.
    #[must_use]
    pub fn binding(&self) -> Option<&LimitStatus> {
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

    /// The operation that gives back what this decision took: once. Apply it to charges that cost at most the units
    /// [`taken`](LimitStatus::taken). A refusal has nothing to give back, and a clone of a decision never has.
    #[must_use]
    pub fn refund(&mut self) -> Option<Operation> {
        core::mem::take(&mut self.refundable).then_some(Operation::Refund { taken_at: self.at })
    }
}

impl Default for Decision {
    /// The decision about no charges at all.
    #[inline]
    fn default() -> Self {
        Self { outcome: Outcome::Allow, at: Timestamp::EPOCH, standings: Statuses::None, refundable: false }
    }
}

impl Clone for Decision {
    /// The right to a refund stays with the original.
    fn clone(&self) -> Self {
        Self { outcome: self.outcome, at: self.at, standings: self.standings.clone(), refundable: false }
    }
}

impl Outcome {
    /// That of a request whose limits stand like this: what the enforced one that binds says.
    fn of(standings: &[LimitStatus]) -> Self {
        let enforced = standings.iter().filter(|standing| !standing.is_shadow);
        enforced.map(|standing| standing.outcome).fold(Self::Allow, Self::or)
    }

    /// Whether the request may not pass.
    #[must_use]
    #[inline]
    pub const fn is_refusal(self) -> bool {
        matches!(self, Self::Refuse(_) | Self::Never)
    }

    /// Orders outcomes from the mildest to the hardest. Waits and their absence are equal: neither refuses.
    const fn severity(self) -> (u8, Duration) {
        match self {
            Self::Allow | Self::Wait(_) => (0, Duration::ZERO),
            Self::Refuse(retry) => (1, retry),
            Self::Never => (2, Duration::ZERO),
        }
    }

    /// The outcome of two limits together.
    fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Wait(one), Self::Wait(another)) => Self::Wait(one.max(another)),
            (Self::Wait(_), Self::Allow) => self,
            _ if other.severity() >= self.severity() => other,
            _ => self,
        }
    }
}
