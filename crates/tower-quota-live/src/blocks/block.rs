use core::fmt;
use core::time::Duration;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use tower_quota_rules::QuotaText;

use crate::audit::{Action, AuditRecord};
use crate::change::By;
use crate::time::Time;

/// The effect of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum BlockKind {
    /// Requests are refused with 403.
    Block {
        /// The limit of the penalty, for a block of a penalty.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<String>,
    },
    /// Requests are admitted and not counted.
    Allow,
    /// A limit counts the client by another quota.
    Override {
        /// The name of the limit.
        limit: String,
        /// The quota, such as `60000/minute`.
        quota: QuotaText,
    },
}

impl BlockKind {
    /// Returns the name of the limit of an override.
    #[must_use]
    pub fn limit(&self) -> Option<&str> {
        match self {
            Self::Override { limit, .. } => Some(limit),
            _ => None,
        }
    }
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
        /// The key of at most 1,024 bytes, with
        /// [`LiveOptions::readable_keys`](crate::LiveOptions::readable_keys).
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

    // A hash in an unknown form, from another program, matches no key.
    pub(crate) fn hash(&self) -> Option<u64> {
        match self {
            Self::Key { hash, .. } => u64::from_str_radix(hash, 16).ok(),
            Self::Network(_) => None,
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

/// A block, an allowance or an override.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Block {
    /// The id for removal, a network, the hash of a key, or a limit and the hash of a key.
    pub id: String,
    /// The effect.
    #[serde(flatten)]
    pub kind: BlockKind,
    /// The clients.
    pub target: Target,
    /// The start.
    pub since: Time,
    /// The end.
    pub until: Time,
    /// The reason.
    pub reason: String,
    /// The author, or `penalty` for a block by a limit's penalty.
    pub author: String,
}

impl Block {
    pub(crate) fn new(target: Target, new: NewBlock) -> Self {
        let NewBlock {
            kind,
            since,
            until,
            by,
        } = new;
        let id = match &kind {
            BlockKind::Override { limit, .. } => format!("{limit} {}", target.id()),
            _ => target.id(),
        };
        Self {
            id,
            kind,
            target,
            since,
            until,
            reason: by.comment,
            author: by.author,
        }
    }

    pub(crate) fn is_of_penalty(&self) -> bool {
        matches!(self.kind, BlockKind::Block { limit: Some(_) })
    }

    /// Returns whether the block replaces an entry with the same id. A penalty must not, because
    /// the instance may not know the operator's entry yet.
    pub(crate) fn replaces(&self, before: &Self) -> bool {
        !self.is_of_penalty() || before.is_of_penalty()
    }

    pub(crate) fn put_record(&self, before: Option<&Self>) -> AuditRecord {
        let what = match self.kind {
            BlockKind::Block { .. } => Action::Block,
            BlockKind::Allow => Action::Allow,
            BlockKind::Override { .. } => Action::Override,
        };
        let by = By::new(&self.author).comment(&self.reason);
        self.record(what, by, [before, Some(self)])
    }

    pub(crate) fn removal_record(&self, by: By) -> AuditRecord {
        let what = match self.kind.limit() {
            Some(_) => Action::EndOverride,
            None => Action::Unblock,
        };
        self.record(what, by, [Some(self), None])
    }

    fn record(&self, what: Action, by: By, states: [Option<&Self>; 2]) -> AuditRecord {
        let state = |block: &Self| match &block.kind {
            BlockKind::Override { quota, .. } => format!("{quota} until {}", block.until),
            _ => format!("until {}", block.until),
        };
        let target = match self.kind.limit() {
            Some(limit) => format!("{limit} {}", self.target.id()),
            None => self.target.to_string(),
        };
        AuditRecord::new(what, by, target, states.map(|block| block.map(state)))
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
    pub(crate) kind: BlockKind,
    since: Time,
    until: Time,
    by: By,
}

impl NewBlock {
    /// Creates a block of this length.
    pub fn block(length: Duration, by: impl Into<By>) -> Self {
        let since = Time::now();
        Self {
            kind: BlockKind::Block { limit: None },
            since,
            until: since.after(length),
            by: by.into(),
        }
    }

    /// Creates an allowance of this length.
    pub fn allow(length: Duration, by: impl Into<By>) -> Self {
        Self {
            kind: BlockKind::Allow,
            ..Self::block(length, by)
        }
    }

    pub(crate) fn of_kind(kind: BlockKind, until: Time, by: By) -> Self {
        let since = Time::now();
        Self {
            kind,
            since,
            until,
            by,
        }
    }

    /// Sets the reason.
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.by.comment = reason.into();
        self
    }
}
