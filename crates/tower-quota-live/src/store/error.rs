use core::error::Error;
use core::fmt;
use std::sync::Arc;

use super::MOST_BLOCKS;

/// The error of a [`RuleStore`](super::RuleStore).
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuleStoreError {
    /// The configuration of the store is invalid. The message names the value and the fix.
    #[error("{0}")]
    Config(#[source] Arc<dyn Error + Send + Sync>),
    /// The store has changed since the caller read it.
    #[error("{}", conflict(*current))]
    Conflict {
        /// The newest version.
        current: Option<u64>,
    },
    /// The documents of this store, such as a file, can only be read.
    #[error("the rules are only read from {0}: change them there")]
    ReadOnly(String),
    /// The store has no version with this number.
    #[error("version {0} is not kept: see the history")]
    UnknownVersion(u64),
    /// The store has no space for another block.
    #[error(
        "there are {MOST_BLOCKS} blocks and overrides already: remove some, or write them in the document"
    )]
    TooManyBlocks,
    /// The store did not answer in time. The change may have happened.
    #[error("{store} is unavailable: {source}")]
    Unavailable {
        /// The store.
        store: String,
        /// The reason.
        source: Arc<dyn Error + Send + Sync>,
    },
    /// This version of the program cannot read the contents of the store.
    #[error("{store} cannot be read: {reason}")]
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

fn conflict(current: Option<u64>) -> String {
    match current {
        Some(current) => {
            format!("the newest version is {current} by now: read it, and make the change again")
        }
        None => "there is no version to change: put the first one".to_owned(),
    }
}
