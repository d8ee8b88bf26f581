//! What is particular to one answer, beside the decision.

use core::time::Duration;

use tower_quota_core::{Name, Quota};

use super::partition::PartitionKey;

/// What an answer is told beside its decision. Nothing of it is worked out unless it was asked for.
#[derive(Debug, Default)]
pub(crate) struct Particulars {
    /// The quotas of limits whose quota depends on the request.
    pub(crate) overrides: Vec<(Name, Quota)>,
    /// Whose counter each limit reads, for clients.
    pub(crate) partitions: Box<[(Name, PartitionKey)]>,
    /// What is added to the wait of a refused client.
    pub(crate) jitter: Duration,
    /// Whether all limits that apply are shadows: clients are then not even told that the store is sick.
    pub(crate) only_shadows: bool,
}

impl Particulars {
    /// The quota of a limit, if it is not the one that the limit was made with.
    pub(super) fn quota(&self, limit: Name) -> Option<&Quota> {
        of(&self.overrides, limit)
    }

    /// The partition of a limit.
    pub(super) fn partition(&self, limit: Name) -> Option<&PartitionKey> {
        of(&self.partitions, limit)
    }

    /// Whether each limit has its own quota and no partition is told, so that policies are what they always are.
    pub(super) const fn leave_policies_alone(&self) -> bool {
        self.overrides.is_empty() && self.partitions.is_empty()
    }
}

fn of<T>(list: &[(Name, T)], limit: Name) -> Option<&T> {
    list.iter().find(|(name, _)| *name == limit).map(|(_, value)| value)
}
