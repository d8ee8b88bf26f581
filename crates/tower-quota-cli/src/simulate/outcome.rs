//! What comes of a replayed request.

use serde::Serialize;
use tower_quota::{Decided, Reason};

/// What comes of a replayed request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ReplayOutcome {
    /// No limit counts it: it is allowed or skipped, or none applies.
    #[default]
    Uncounted,
    /// All its limits admit it.
    Admitted,
    /// It is admitted after a wait for its turn.
    Queued,
    /// It is over a quota.
    Limited,
    /// It is blocked.
    Blocked,
    /// It lacks the key of a limit that refuses such requests.
    MissingKey,
}

impl ReplayOutcome {
    /// All outcomes, in the order of their counts.
    pub(crate) const ALL: [Self; 6] =
        [Self::Uncounted, Self::Admitted, Self::Queued, Self::Limited, Self::Blocked, Self::MissingKey];

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
