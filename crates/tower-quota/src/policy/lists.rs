use core::error::Error;
use core::fmt;
use std::sync::Arc;

use super::explained::Explained;
use crate::head::RequestHead;
use crate::response::Reason;
use crate::when::Condition;

/// The requests that a policy does not count.
#[derive(Clone, Default)]
pub(crate) struct Lists {
    pub(super) allowed: Vec<Arc<dyn Condition>>,
    pub(super) blocked: Vec<Arc<dyn Condition>>,
    pub(super) skipped: Vec<Arc<dyn Condition>>,
    pub(super) is_unavailable: bool,
}

#[derive(Debug)]
struct NoRules;

impl fmt::Display for NoRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no rules are in force")
    }
}

impl Error for NoRules {}

impl Lists {
    pub(super) const fn are_empty(&self) -> bool {
        self.allowed.is_empty()
            && self.blocked.is_empty()
            && self.skipped.is_empty()
            && !self.is_unavailable
    }

    /// Allowed requests take precedence over blocked requests, and blocked over skipped requests.
    pub(crate) fn find(&self, head: &RequestHead<'_>) -> Option<Explained> {
        // With conflicting values, any listed value blocks, but does not allow or skip.
        let is_listed = |conditions: &[Arc<dyn Condition>], in_doubt| {
            let head = head.in_doubt(in_doubt);
            conditions.iter().any(|condition| condition(&head))
        };
        if is_listed(&self.allowed, false) {
            Some(Explained::Allowed)
        } else if is_listed(&self.blocked, true) {
            Some(Explained::Refused(Reason::Blocked))
        } else if is_listed(&self.skipped, false) {
            Some(Explained::Skipped)
        } else if self.is_unavailable {
            Some(Explained::Refused(Reason::StoreFailure(&NoRules)))
        } else {
            None
        }
    }
}
