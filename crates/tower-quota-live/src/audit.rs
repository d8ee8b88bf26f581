use serde::{Deserialize, Serialize};

use super::change::By;
use super::metrics;
use super::time::Time;
use super::version::Version;

/// The author of changes that an instance makes by itself.
const PROGRAM: &str = "tower-quota";
/// The maximum number of ids in the comment of a record.
const MOST_IDS: usize = 50;

/// A record of the audit log, which the tracing target `tower_quota::audit` has too.
///
/// Keep the lines of this target if records must be complete and genuine: a store loses records in
/// a restart, and everybody with write access to the store can add some. Keys appear as hashes, documents as version numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// The file of the rules was changed.
    File,
    /// The store had lost changes, and an instance put them back.
    Restored,
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
            Self::File => "file",
            Self::Restored => "restored",
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

    /// Creates the record of changes that the store had lost: the number of its version and the
    /// version that an instance put back, and the ids of blocks and removals.
    pub(crate) fn of_restored(version: Option<(Option<u64>, &Version)>, ids: &[String]) -> Self {
        let name = |number: u64| format!("version {number}");
        let mut parts = Vec::new();
        let (mut before, mut after) = (None, None);
        if let Some((stored, version)) = version {
            (before, after) = (stored.map(name), Some(name(version.number)));
            let mut part = format!("the rules of {}", version.author);
            if !version.comment.is_empty() {
                part += &format!(": {}", version.comment);
            }
            parts.push(part);
        }
        if !ids.is_empty() {
            let mut ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            ids.sort_unstable();
            let more = ids.split_off(ids.len().min(MOST_IDS)).len();
            let mut part = format!("changes of blocks: {}", ids.join(", "));
            if more > 0 {
                part += &format!(" and {more} more");
            }
            parts.push(part);
        }
        let by = By::new(PROGRAM).comment(parts.join("; "));
        Self::new(Action::Restored, by, "rules".to_owned(), [before, after])
    }

    /// Creates the record of a changed file. Instances number its versions themselves, so the record
    /// has the hashes of the texts.
    pub(crate) fn of_file(before: Option<&Version>, after: &Version) -> Self {
        let name = |version: &Version| format!("hash {:012x}", version.short_hash());
        let by = By::new("file").comment(format!("version {} of this instance", after.number));
        let states = [before.map(name), Some(name(after))];
        Self::new(Action::File, by, "rules".to_owned(), states)
    }

    /// Writes the record to the log, and counts it.
    pub(crate) fn announce(&self) {
        metrics::record_audit_event(self.what.as_str());
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::NewVersion;

    #[test]
    fn restored_version_shows_its_comment() {
        let comment = |new: NewVersion| {
            let version = Version::new(3, new);
            let ids = ["203.0.113.0/24".to_owned()];
            AuditRecord::of_restored(Some((Some(2), &version)), &ids).comment
        };
        let (new, blocks) = (
            NewVersion::new("", "ann"),
            "changes of blocks: 203.0.113.0/24",
        );
        assert_eq!(comment(new.clone()), format!("the rules of ann; {blocks}"));
        let fixed = comment(new.comment("the fix"));
        assert_eq!(fixed, format!("the rules of ann: the fix; {blocks}"));
    }
}
