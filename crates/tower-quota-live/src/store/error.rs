use core::error::Error;
use core::fmt;
use std::sync::Arc;

use super::MOST_BLOCKS;

/// The error of a [`RuleStore`](super::RuleStore).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RuleStoreError {
    /// The configuration of the store is invalid. The message names the value and the fix.
    Config(Arc<dyn Error + Send + Sync>),
    /// The store has changed since the caller read it.
    Conflict {
        /// The newest version.
        current: Option<u64>,
    },
    /// The documents of this store, such as a file, can only be read.
    ReadOnly(String),
    /// The store has no version with this number.
    UnknownVersion(u64),
    /// The store has no space for another block.
    TooManyBlocks,
    /// The store did not answer in time. The change may have happened.
    Unavailable {
        /// The store.
        store: String,
        /// The reason.
        source: Arc<dyn Error + Send + Sync>,
    },
    /// This version of the program cannot read the contents of the store.
    Unreadable {
        /// The store.
        store: String,
        /// The reason.
        reason: String,
    },
}

impl RuleStoreError {
    /// Creates the error of an invalid configuration.
    pub fn config(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Config(Arc::from(source.into()))
    }

    /// Creates the error of an unavailable store.
    pub fn unavailable(
        store: impl Into<String>,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self::Unavailable {
            store: store.into(),
            source: Arc::from(source.into()),
        }
    }

    /// Creates the error of an unreadable store.
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
                write!(f, "the rules are only read from {store}: change them there")
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
