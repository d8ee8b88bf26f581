use thiserror::Error;
use tower_quota::HandleError;
use tower_quota::store::BoxStoreError;
use tower_quota_rules::Problems;

use super::store::RuleStoreError;

/// The error of a start without rules, with the store, the failure and the fix.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StartError {
    /// The store did not answer in time, and there is no usable local copy.
    #[error(
        "no rules from {store}: {reason}. Make the store available, or choose what holds until then by \
         `LiveOptions::without_rules`"
    )]
    Unavailable {
        /// The store.
        store: String,
        /// The failure, such as a missing file.
        reason: String,
    },
    /// The store has no valid document, and there is no usable local copy.
    #[error(
        "no valid rules in {store}: {reason}. Correct the document, and check it by `tower-quota check`"
    )]
    Invalid {
        /// The store.
        store: String,
        /// The version, and all of its problems or its failed tests.
        reason: String,
    },
    /// The store has no document yet.
    #[error(
        "no rules in {store} yet: put the first document, or choose what holds until then by \
         `LiveOptions::without_rules`"
    )]
    Empty {
        /// The store.
        store: String,
    },
    /// The limits of [`WithoutRules::Fallback`](crate::WithoutRules::Fallback) are unusable.
    #[error("the limits of `WithoutRules::Fallback` cannot be used: {0}")]
    Fallback(String),
}

/// The error of a change of live rules.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ChangeError {
    /// The document is invalid and was not put.
    #[error("{0}")]
    Invalid(#[source] Problems),
    /// The change is refused, for this reason.
    #[error("{0}")]
    Refused(String),
    /// The limit cannot be changed for this client, or the store of the counters failed.
    #[error("{0}")]
    Client(#[from] HandleError<BoxStoreError>),
    /// The store did not make the change, or did not confirm it in time.
    #[error("{0}")]
    Store(#[from] RuleStoreError),
}
