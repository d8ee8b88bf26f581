use core::fmt;
use core::time::Duration;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::time::Time;

/// The effect of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum BlockKind {
    /// Requests are refused with 403.
    #[default]
    Block,
    /// Requests are admitted and not counted.
    Allow,
}

/// The clients of a block, in their stored form.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// A client, by its key.
    Key {
        /// The scope of the key, such as `header x-api-key`.
        scope: String,
        /// The keyed hash of the key, 16 hexadecimal digits.
        hash: String,
        /// The key, with [`LiveOptions::readable_keys`](crate::LiveOptions::readable_keys).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
    /// All clients with an address in a network.
    Network(IpNet),
}

impl Target {
    /// Returns the id of a block with this target.
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
    /// The id for removal, a network or the hash of a key.
    pub id: String,
    /// The effect.
    pub kind: BlockKind,
    /// The clients.
    #[cfg_attr(feature = "openapi", schema(value_type = super::schema::TargetSchema))]
    pub target: Target,
    /// The start.
    pub since: Time,
    /// The end.
    pub until: Time,
    /// The reason.
    pub reason: String,
    /// The author, or `penalty` for a block by a limit's penalty.
    pub author: String,
    /// The limit of the penalty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
}

impl Block {
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

    /// Returns whether the block is in force.
    #[must_use]
    pub fn is_in_force(&self, now: Time) -> bool {
        self.until > now
    }
}

/// A new block or allowance, without its target.
#[derive(Clone, Debug)]
#[must_use]
pub struct NewBlock {
    kind: BlockKind,
    length: Duration,
    reason: String,
    author: String,
}

impl NewBlock {
    /// Creates a block of this length.
    pub fn block(length: Duration, author: impl Into<String>) -> Self {
        Self {
            kind: BlockKind::Block,
            length,
            reason: String::new(),
            author: author.into(),
        }
    }

    /// Creates an allowance of this length.
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
