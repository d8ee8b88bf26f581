//! The limits of a policy that header fields report.

use http::header::HeaderValue;
use tower_quota_core::Name;

use super::draft11::policy_of_all;
use crate::limit::{ById, Limit};

/// The limits of a policy that header fields report, found by name.
#[derive(Debug)]
pub(super) struct Limits {
    list: Vec<Limit>,
    by_id: ById,
    /// The value of `RateLimit-Policy` if all limits apply, each by its own quota.
    pub(super) policy: Option<HeaderValue>,
}

impl Limits {
    pub(super) fn new<'a>(limits: impl IntoIterator<Item = &'a Limit>) -> Self {
        let list: Vec<Limit> = limits
            .into_iter()
            .filter(|limit| !limit.is_shadow())
            .cloned()
            .collect();
        Self {
            by_id: ById::new(list.iter().map(|limit| limit.name)),
            policy: policy_of_all(&list),
            list,
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns a limit, which is nearly always at this position.
    pub(super) fn find(&self, name: Name, position: usize) -> Option<&Limit> {
        // Within a policy each limit has its own number.
        self.list
            .get(position)
            .filter(|limit| limit.name.id() == name.id())
            .or_else(|| self.list.get(self.by_id.find(name.id())?))
    }
}
