use serde::{Deserialize, Serialize};

use super::change::By;
use super::time::Time;

/// A record of the audit log. Keys appear as hashes, documents as version numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct AuditRecord {
    /// The time of the change.
    pub time: Time,
    /// The author.
    pub who: String,
    /// The kind of change.
    pub what: Action,
    /// The target, such as `rules`, a limit with a hashed key, or the id of a block.
    pub target: String,
    /// The value before the change, if any.
    pub before: Option<String>,
    /// The value after the change, if any.
    pub after: Option<String>,
    /// The reason.
    pub comment: String,
}

/// A kind of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Action {
    /// A document was put in force.
    Put,
    /// An old document was put in force again.
    Rollback,
    /// A client or network was blocked.
    Block,
    /// A client or network was allowed.
    Allow,
    /// A block or an allowance was removed.
    Unblock,
    /// A client got another quota, until an end.
    Override,
    /// An override was ended early.
    EndOverride,
    /// A counter was reset.
    Reset,
    /// Used units were given back.
    Grant,
}

impl Action {
    /// Returns the action in a word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Rollback => "rollback",
            Self::Block => "block",
            Self::Allow => "allow",
            Self::Unblock => "unblock",
            Self::Override => "override",
            Self::EndOverride => "end_override",
            Self::Reset => "reset",
            Self::Grant => "grant",
        }
    }
}

impl AuditRecord {
    pub(crate) fn new(
        what: Action,
        by: By,
        target: String,
        [before, after]: [Option<String>; 2],
    ) -> Self {
        Self {
            time: Time::now(),
            who: by.author,
            what,
            target,
            before,
            after,
            comment: by.comment,
        }
    }

    pub(crate) fn log(&self) {
        tracing::info!(
            target: "tower_quota::audit",
            time = %self.time,
            who = self.who,
            what = self.what.as_str(),
            of = self.target,
            before = self.before,
            after = self.after,
            comment = self.comment,
        );
    }
}
