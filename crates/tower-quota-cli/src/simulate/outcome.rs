//! Outcomes of replayed requests.

use serde::Serialize;
use tower_quota::{Decided, Reason};

/// The outcome of a replayed request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ReplayOutcome {
    /// Not counted: allowed or skipped, or no limit applies.
    #[default]
    Uncounted,
    /// Admitted by all its limits.
    Admitted,
    /// Admitted after a wait for its turn.
    Queued,
    /// Over a quota.
    Limited,
    /// Blocked.
    Blocked,
    /// Refused by a limit whose key it lacks.
    MissingKey,
}

impl ReplayOutcome {
    /// All outcomes, in the order of their counts.
    pub(crate) const ALL: [Self; 6] = [
        Self::Uncounted,
        Self::Admitted,
        Self::Queued,
        Self::Limited,
        Self::Blocked,
        Self::MissingKey,
    ];

    pub(super) fn of(decided: &Decided<'_>) -> Self {
        match decided.reason() {
            Some(Reason::OverQuota(_) | Reason::NeverFits(_)) => Self::Limited,
            Some(Reason::Blocked) => Self::Blocked,
            Some(_) => Self::MissingKey,
            None if decided.decision().is_none() => Self::Uncounted,
            None if decided.wait().is_zero() => Self::Admitted,
            None => Self::Queued,
        }
    }

    /// Returns whether the request reaches the service.
    pub(crate) const fn is_admitted(self) -> bool {
        matches!(self, Self::Uncounted | Self::Admitted | Self::Queued)
    }
}
