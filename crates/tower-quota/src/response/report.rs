use core::time::Duration;

use tower_quota_core::{Decision, Name, Quota};

use crate::settle::Counted;

#[derive(Debug, Default)]
pub(crate) struct Report {
    /// The decision, absent if the store failed and the request was not counted.
    pub(crate) decision: Option<Decision>,
    pub(crate) by: Counted,
    pub(crate) overrides: Vec<(Name, Quota)>,
    pub(crate) oversized: Vec<(Name, u64)>,
    pub(crate) jitter: Duration,
    /// Whether only shadows apply, so that the response gets no fields.
    pub(crate) only_shadows: bool,
}

impl Report {
    pub(crate) fn is_degraded(&self) -> bool {
        self.decision.is_none() || self.by == Counted::Locally
    }

    pub(super) fn other_quota(&self, limit: Name) -> Option<&Quota> {
        self.overrides
            .iter()
            .find(|(name, _)| *name == limit)
            .map(|(_, quota)| quota)
    }
}
