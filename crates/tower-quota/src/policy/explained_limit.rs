//! A limit in the explanation of what a policy would do with a request.

use core::fmt;

use tower_quota_core::{Key, Name, Quota};

/// A limit that decides a request.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExplainedLimit {
    /// The limit's name.
    pub name: Name,
    /// The quota by which the request is counted: the limit's own, or the one chosen for it.
    pub quota: Quota,
    /// The key that is counted.
    pub key: Key<'static>,
    /// The cost in units.
    pub cost: u64,
    /// True if the limit is evaluated and never enforced.
    pub is_shadow: bool,
}

impl fmt::Debug for ExplainedLimit {
    /// Does not show the key, which may be a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("ExplainedLimit");
        shown
            .field("name", &self.name)
            .field("quota", &self.quota)
            .field("by", &self.key.scope());
        shown
            .field("cost", &self.cost)
            .field("is_shadow", &self.is_shadow)
            .finish_non_exhaustive()
    }
}
