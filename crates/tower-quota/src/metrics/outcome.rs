//! The outcomes of requests and of limits, as labels.

use tower_quota_core::{LimitStatus, Outcome};

use crate::decided::Decided;
use crate::response::Reason;

/// The outcome of a request.
#[derive(Clone, Copy)]
pub(super) enum RequestOutcome {
    Allowed,
    Queued,
    Skipped,
    Limited,
    Never,
    Blocked,
    MissingKey,
    Degraded,
    Unavailable,
}

/// The outcome of one limit for a request.
#[derive(Clone, Copy)]
pub(super) enum LimitOutcome {
    Allowed,
    Queued,
    Limited,
    Never,
    Shadowed,
    Degraded,
}

impl RequestOutcome {
    pub(super) const LABELS: [&str; 9] = [
        "allowed",
        "queued",
        "skipped",
        "limited",
        "never",
        "blocked",
        "missing_key",
        "degraded",
        "unavailable",
    ];

    pub(super) fn of(decided: &Decided<'_>) -> Self {
        match decided.reason {
            Some(Reason::OverQuota(_)) => Self::Limited,
            Some(Reason::NeverFits(_) | Reason::TooManyLimits) => Self::Never,
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
}

impl LimitOutcome {
    pub(super) const LABELS: [&str; 6] = [
        "allowed", "queued", "limited", "never", "shadowed", "degraded",
    ];

    pub(super) const fn of(status: &LimitStatus) -> Self {
        match (status.outcome, status.is_shadow) {
            (Outcome::Refuse(_) | Outcome::Never, true) => Self::Shadowed,
            (Outcome::Refuse(_), false) => Self::Limited,
            (Outcome::Never, false) => Self::Never,
            (Outcome::Wait(_), false) => Self::Queued,
            _ => Self::Allowed,
        }
    }
}
