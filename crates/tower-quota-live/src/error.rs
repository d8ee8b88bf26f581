use core::error::Error;
use core::fmt;

use tower_quota::store::BoxStoreError;
use tower_quota::{ConfigError, HandleError};
use tower_quota_rules::{Problems, TestReport};

use super::store::RuleStoreError;

#[derive(Clone, Debug)]
pub(crate) enum Invalid {
    Problems(Problems),
    Tests(TestReport),
    Config(ConfigError),
    Failed(String),
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Problems(problems) => problems.fmt(f),
            Self::Tests(tests) => write!(f, "the document's own tests fail: {tests}"),
            Self::Config(error) => error.fmt(f),
            Self::Failed(reason) => write!(f, "the document could not be read: {reason}"),
        }
    }
}

/// The error of a start without rules, with the store, the failure and the fix.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StartError {
    /// The store did not answer in time, and there is no usable local copy.
    Unavailable {
        /// The store.
        store: String,
        /// The failure, such as a missing file.
        reason: String,
    },
    /// The store has no valid document, and there is no usable local copy.
    Invalid {
        /// The store.
        store: String,
        /// The version, and all of its problems or its failed tests.
        reason: String,
    },
    /// The store has no document yet.
    Empty {
        /// The store.
        store: String,
    },
    /// The limits of [`WithoutRules::Fallback`](crate::WithoutRules::Fallback) are unusable.
    Fallback(String),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unavailable { store, reason } => write!(
                f,
                "no rules from {store}: {reason}. Make the store available, or choose what holds until then by \
                 `LiveOptions::without_rules`"
            ),
            Self::Invalid { store, reason } => write!(
                f,
                "no valid rules in {store}: {reason}. Correct the document, and check it by `tower-quota check`"
            ),
            Self::Empty { store } => write!(
                f,
                "no rules in {store} yet: put the first document, or choose what holds until then by \
                 `LiveOptions::without_rules`"
            ),
            Self::Fallback(reason) => write!(
                f,
                "the limits of `WithoutRules::Fallback` cannot be used: {reason}"
            ),
        }
    }
}

impl Error for StartError {}

/// The error of a change of live rules.
#[derive(Debug)]
#[non_exhaustive]
pub enum ChangeError {
    /// The document is invalid and was not put.
    Invalid(Problems),
    /// The document is incompatible with the document in force.
    Incompatible(ConfigError),
    /// The change is refused, for this reason.
    Refused(String),
    /// The limit cannot be changed for this client, or the store of the counters failed.
    Client(HandleError<BoxStoreError>),
    /// The store did not make the change, or did not confirm it in time.
    Store(RuleStoreError),
}

impl From<Invalid> for ChangeError {
    fn from(invalid: Invalid) -> Self {
        match invalid {
            Invalid::Problems(problems) => Self::Invalid(problems),
            Invalid::Config(error) => Self::Incompatible(error),
            Invalid::Tests(_) | Invalid::Failed(_) => Self::Refused(invalid.to_string()),
        }
    }
}

impl From<HandleError<BoxStoreError>> for ChangeError {
    fn from(error: HandleError<BoxStoreError>) -> Self {
        Self::Client(error)
    }
}

impl From<RuleStoreError> for ChangeError {
    fn from(error: RuleStoreError) -> Self {
        Self::Store(error)
    }
}

impl fmt::Display for ChangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(problems) => problems.fmt(f),
            Self::Incompatible(error) => write!(
                f,
                "the document is incompatible with the document in force: {error}"
            ),
            Self::Refused(reason) => f.write_str(reason),
            Self::Client(error) => error.fmt(f),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl Error for ChangeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Invalid(problems) => Some(problems),
            Self::Incompatible(error) => Some(error),
            Self::Refused(_) => None,
            Self::Client(error) => Some(error),
            Self::Store(error) => Some(error),
        }
    }
}
