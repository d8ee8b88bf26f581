//! Whom a policy does not count: the allowed, the blocked, and what is skipped.

use std::sync::Arc;

use crate::head::RequestHead;
use crate::when::Condition;

/// The conditions of a policy as a whole.
#[derive(Clone, Debug)]
pub(crate) struct Lists {
    pub(crate) allowed: Vec<Arc<dyn Condition>>,
    pub(crate) blocked: Vec<Arc<dyn Condition>>,
    pub(crate) skipped: Vec<Arc<dyn Condition>>,
}

/// What becomes of a request by the lists alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listed {
    /// Nothing: its limits decide.
    No,
    /// It passes uncounted.
    Free,
    /// It is refused.
    Blocked,
}

impl Lists {
    pub(crate) const fn new() -> Self {
        Self { allowed: Vec::new(), blocked: Vec::new(), skipped: Vec::new() }
    }

    /// Whether they say nothing of any request.
    pub(crate) const fn are_empty(&self) -> bool {
        self.allowed.is_empty() && self.blocked.is_empty() && self.skipped.is_empty()
    }

    /// Looks a request up. Who is allowed is not blocked; what is merely skipped may be.
    pub(crate) fn find(&self, head: &RequestHead<'_>) -> Listed {
        // Of conflicting values, a listed one blocks and frees nothing.
        let listed = |conditions: &[Arc<dyn Condition>], in_doubt| {
            let head = head.in_doubt(in_doubt);
            conditions.iter().any(|condition| condition(&head))
        };
        if listed(&self.allowed, false) {
            Listed::Free
        } else if listed(&self.blocked, true) {
            Listed::Blocked
        } else if listed(&self.skipped, false) {
            Listed::Free
        } else {
            Listed::No
        }
    }
}
