use tower_quota_core::{LimitStatus, Outcome};

use crate::decided::Decided;
use crate::response::Reason;

#[derive(Clone, Copy)]
pub(super) enum OutcomeLabel {
    Allowed,
    Queued,
    Limited,
    Never,
    Degraded,
    /// Only for shadow limits.
    Shadowed,
    // Only for requests.
    Skipped,
    Blocked,
    MissingKey,
    Unavailable,
}

impl OutcomeLabel {
    pub(super) const LABELS: [&str; 10] = [
        "allowed",
        "queued",
        "limited",
        "never",
        "degraded",
        "shadowed",
        "skipped",
        "blocked",
        "missing_key",
        "unavailable",
    ];

    pub(super) fn of_request(decided: &Decided<'_>) -> Self {
        match decided.reason {
            Some(Reason::OverQuota(_)) => Self::Limited,
            Some(Reason::NeverFits(_) | Reason::TooManyLimits | Reason::Undecidable(_)) => {
                Self::Never
            }
            Some(Reason::Blocked) => Self::Blocked,
            Some(Reason::MissingKey(_) | Reason::Unauthenticated(_) | Reason::NoPeerAddress) => {
                Self::MissingKey
            }
            Some(Reason::StoreFailure(_)) => Self::Unavailable,
            None => match decided.decision {
                None => Self::Degraded,
                Some(decision) if decision.wait().is_zero() => Self::Allowed,
                Some(_) => Self::Queued,
            },
        }
    }

    pub(super) const fn of_limit(status: &LimitStatus) -> Self {
        match (status.outcome, status.is_shadow) {
            (Outcome::Refuse(_) | Outcome::Never, true) => Self::Shadowed,
            (Outcome::Refuse(_), false) => Self::Limited,
            (Outcome::Never, false) => Self::Never,
            (Outcome::Wait(_), false) => Self::Queued,
            _ => Self::Allowed,
        }
    }
}
