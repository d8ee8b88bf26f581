//! The outcomes of requests and of limits, as labels.

use tower_quota_core::{LimitStatus, Outcome};

use crate::decided::Decided;
use crate::response::Reason;

/// Defines an enum whose variants are labels, and the list of the labels.
macro_rules! labels {
    ($(#[$meta:meta])* $name:ident { $($variant:ident: $label:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug)]
        pub(crate) enum $name { $($variant),* }

        impl $name {
            pub(super) const LABELS: &[&'static str] = &[$($label),*];
        }
    };
}

labels! {
    /// The outcome of a request.
    RequestOutcome {
        Allowed: "allowed",
        Queued: "queued",
        Skipped: "skipped",
        Limited: "limited",
        Never: "never",
        Blocked: "blocked",
        MissingKey: "missing_key",
        Degraded: "degraded",
        Unavailable: "unavailable",
    }
}

labels! {
    /// The outcome of one limit for a request.
    LimitOutcome {
        Allowed: "allowed",
        Queued: "queued",
        Limited: "limited",
        Never: "never",
        Shadowed: "shadowed",
        Degraded: "degraded",
    }
}

labels! {
    /// The choice for a request that the store could not decide.
    DegradedChoice {
        Allow: "allow",
        Refuse: "refuse",
        Local: "local",
    }
}

labels! {
    /// The kind of a store's failure.
    StoreFailureKind {
        Store: "store",
        Timeout: "timeout",
        Settle: "settle",
    }
}

impl RequestOutcome {
    #[inline]
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
    #[inline]
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
