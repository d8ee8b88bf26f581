//! Requests that a policy does not count: allowed, blocked and skipped ones.

use std::sync::Arc;

use crate::head::RequestHead;
use crate::when::Condition;

/// The conditions of a policy as a whole.
#[derive(Clone, Debug)]
pub(crate) struct Lists {
    pub(super) allowed: Vec<Arc<dyn Condition>>,
    pub(super) blocked: Vec<Arc<dyn Condition>>,
    pub(super) skipped: Vec<Arc<dyn Condition>>,
}

/// What the lists say of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listed {
    /// Nothing: its limits decide.
    Unlisted,
    /// It passes uncounted, whatever else the lists say.
    Allowed,
    /// It passes uncounted.
    Skipped,
    /// It is refused.
    Blocked,
}

impl Lists {
    pub(super) const fn new() -> Self {
        Self { allowed: Vec::new(), blocked: Vec::new(), skipped: Vec::new() }
    }

    /// Returns whether they say nothing of any request.
    pub(super) const fn are_empty(&self) -> bool {
        self.allowed.is_empty() && self.blocked.is_empty() && self.skipped.is_empty()
    }

    /// Looks a request up: allowed goes before blocked, and blocked before skipped.
    pub(crate) fn find(&self, head: &RequestHead<'_>) -> Listed {
        // Of conflicting values, a listed one blocks, and allows or skips nothing.
        let is_listed = |conditions: &[Arc<dyn Condition>], in_doubt| {
            let head = head.in_doubt(in_doubt);
            conditions.iter().any(|condition| condition(&head))
        };
        if is_listed(&self.allowed, false) {
            Listed::Allowed
        } else if is_listed(&self.blocked, true) {
            Listed::Blocked
        } else if is_listed(&self.skipped, false) {
            Listed::Skipped
        } else {
            Listed::Unlisted
        }
    }
}
