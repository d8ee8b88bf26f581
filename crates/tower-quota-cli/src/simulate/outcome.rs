use serde::Serialize;
use tower_quota::{Decided, Reason};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ReplayOutcome {
    Admitted,
    Limited,
    Queued,
    Blocked,
    MissingKey,
    /// The request is not counted, because it is allowed or skipped, or because no limit applies.
    #[default]
    Uncounted,
}

impl ReplayOutcome {
    pub(super) const ALL: [Self; 6] = [
        Self::Admitted,
        Self::Limited,
        Self::Queued,
        Self::Blocked,
        Self::MissingKey,
        Self::Uncounted,
    ];

    pub(super) fn of(decided: &Decided<'_>) -> Self {
        match decided.reason {
            Some(Reason::OverQuota(_) | Reason::NeverFits(_)) => Self::Limited,
            Some(Reason::Blocked) => Self::Blocked,
            Some(_) => Self::MissingKey,
            None if decided.decision.is_none() => Self::Uncounted,
            None if decided.wait().is_zero() => Self::Admitted,
            None => Self::Queued,
        }
    }

    pub(super) const fn is_admitted(self) -> bool {
        matches!(self, Self::Uncounted | Self::Admitted | Self::Queued)
    }
}
