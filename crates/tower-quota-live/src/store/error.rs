//! The errors of stores.

use core::error::Error;
use core::fmt;
use std::sync::Arc;

use super::MOST_BLOCKS;
use tower_quota_rules::Format;

/// The error of a [`RuleStore`](super::RuleStore).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RuleStoreError {
    /// The configuration of the store is invalid. The message names the value and how to fix it.
    Config(Arc<dyn Error + Send + Sync>),
    /// The store has changed since the caller read it.
    Conflict {
        /// The newest version.
        current: Option<u64>,
    },
    /// The store cannot be written to by this process.
    ReadOnly(String),
    /// The store holds documents of one format, and this one is of another.
    WrongFormat {
        /// The store.
        store: String,
        /// The format that it holds.
        format: Format,
    },
    /// The store does not keep a version of this number.
    UnknownVersion(u64),
    /// The store has the most blocks that it can hold.
    TooManyBlocks,
    /// The store does not answer, or not in time. A change may or may not have been made.
    Unavailable {
        /// The store.
        store: String,
        /// The reason.
        source: Arc<dyn Error + Send + Sync>,
    },
    /// The store holds something that this version of the program cannot read.
    Unreadable {
        /// The store.
        store: String,
        /// The reason why it cannot be read.
        reason: String,
    },
}

impl RuleStoreError {
    /// Makes the error of an invalid configuration.
    pub fn config(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Config(Arc::from(source.into()))
    }

    /// Makes the error of a store that does not answer.
    pub fn unavailable(
        store: impl Into<String>,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self::Unavailable {
            store: store.into(),
            source: Arc::from(source.into()),
        }
    }

    /// Makes the error of a store whose contents cannot be read.
    pub fn unreadable(store: impl Into<String>, reason: impl fmt::Display) -> Self {
        Self::Unreadable {
            store: store.into(),
            reason: reason.to_string(),
        }
    }
}

impl fmt::Display for RuleStoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(source) => write!(f, "{source}"),
            Self::Conflict {
                current: Some(current),
            } => {
                write!(
                    f,
                    "the newest version is {current} by now: read it, and make the change again"
                )
            }
            Self::Conflict { current: None } => {
                f.write_str("there is no version to change: put the first one")
            }
            Self::ReadOnly(store) => {
                write!(f, "{store} is read-only here: change it at its source")
            }
            Self::WrongFormat { store, format } => {
                write!(f, "{store} holds {format}: put the document as {format}")
            }
            Self::UnknownVersion(number) => {
                write!(f, "version {number} is not kept: see the history")
            }
            Self::TooManyBlocks => {
                write!(
                    f,
                    "there are {MOST_BLOCKS} blocks and overrides already: remove some, or write them in the document"
                )
            }
            Self::Unavailable { store, source } => write!(f, "{store} is unavailable: {source}"),
            Self::Unreadable { store, reason } => write!(f, "{store} cannot be read: {reason}"),
        }
    }
}

impl Error for RuleStoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Config(source) | Self::Unavailable { source, .. } => Some(&**source),
            _ => None,
        }
    }
}
