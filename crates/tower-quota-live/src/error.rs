//! The errors of changes.

use core::error::Error;
use core::fmt;

use tower_quota::ConfigError;

use super::store::RuleStoreError;
use tower_quota_rules::Problems;

/// The reason why a document cannot come into force.
#[derive(Clone, Debug)]
pub(crate) enum Invalid {
    Problems(Problems),
    Config(ConfigError),
    Failed(String),
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Problems(problems) => problems.fmt(f),
            Self::Config(error) => error.fmt(f),
            Self::Failed(reason) => write!(f, "the document could not be read: {reason}"),
        }
    }
}

/// The error of a change of live rules.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ChangeError {
    /// The document is invalid: it was not put.
    Invalid(Problems),
    /// The document cannot run beside the one in force.
    Beside(ConfigError),
    /// The change cannot be made, for this reason.
    Refused(String),
    /// The store did not make the change, or did not say so in time.
    Store(RuleStoreError),
}

impl From<Invalid> for ChangeError {
    fn from(invalid: Invalid) -> Self {
        match invalid {
            Invalid::Problems(problems) => Self::Invalid(problems),
            Invalid::Config(error) => Self::Beside(error),
            Invalid::Failed(reason) => Self::Refused(reason),
        }
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
            Self::Beside(error) => write!(
                f,
                "the document cannot run beside the one in force: {error}"
            ),
            Self::Refused(reason) => f.write_str(reason),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl Error for ChangeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Invalid(problems) => Some(problems),
            Self::Beside(error) => Some(error),
            Self::Refused(_) => None,
            Self::Store(error) => Some(error),
        }
    }
}
