//! Entries of the list of blocks.

use core::fmt;
use core::time::Duration;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::time::Time;

/// The effect of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum BlockKind {
    /// Requests are refused with 403.
    #[default]
    Block,
    /// Requests are not counted, and not blocked.
    Allow,
}

/// The clients of an entry, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// A client, by its key.
    Key {
        /// The scope of the key, such as `header x-api-key`.
        scope: String,
        /// The keyed hash of the key, 16 hexadecimal digits.
        hash: String,
        /// The key, if the options ask for readable ones.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
    /// All clients whose address is in a network.
    Network(IpNet),
}

impl Target {
    /// Returns the id of an entry with this target.
    #[must_use]
    pub fn id(&self) -> String {
        match self {
            Self::Key { hash, .. } => hash.clone(),
            Self::Network(network) => network.trunc().to_string(),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key { scope, hash, .. } => write!(f, "{scope} {hash}"),
            Self::Network(network) => network.fmt(f),
        }
    }
}

/// A block or an allowance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct Block {
    /// The id, by which it is removed: a network, or the hash of a key.
    pub id: String,
    /// The effect.
    pub kind: BlockKind,
    /// The clients.
    #[cfg_attr(feature = "openapi", schema(value_type = super::schema::TargetSchema))]
    pub target: Target,
    /// The instant at which it began.
    pub since: Time,
    /// The instant at which it ends.
    pub until: Time,
    /// The reason.
    pub reason: String,
    /// The author; `penalty` if a limit's penalty made the block.
    pub author: String,
    /// The limit whose penalty made the block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
}

impl Block {
    /// Makes an entry that begins now.
    pub(crate) fn new(target: Target, new: NewBlock) -> Self {
        let since = Time::now();
        let until = since.after(new.length);
        let NewBlock {
            kind,
            reason,
            author,
            ..
        } = new;
        Self {
            id: target.id(),
            kind,
            target,
            since,
            until,
            reason,
            author,
            limit: None,
        }
    }

    /// Returns whether it is in force.
    #[must_use]
    pub fn is_in_force(&self, now: Time) -> bool {
        self.until > now
    }
}

/// A block or an allowance that is to be made, without its target.
#[derive(Clone, Debug)]
#[must_use]
pub struct NewBlock {
    kind: BlockKind,
    length: Duration,
    reason: String,
    author: String,
}

impl NewBlock {
    /// Makes a block of this length.
    pub fn block(length: Duration, author: impl Into<String>) -> Self {
        Self {
            kind: BlockKind::Block,
            length,
            reason: String::new(),
            author: author.into(),
        }
    }

    /// Makes an allowance of this length.
    pub fn allow(length: Duration, author: impl Into<String>) -> Self {
        Self {
            kind: BlockKind::Allow,
            ..Self::block(length, author)
        }
    }

    /// Sets the reason.
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = reason.into();
        self
    }
}
