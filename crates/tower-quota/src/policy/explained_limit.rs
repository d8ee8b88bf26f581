use core::fmt;

use tower_quota_core::{Key, Name, Quota};

/// A limit that decides a request.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExplainedLimit {
    /// The limit's name.
    pub name: Name,
    /// The quota of the request.
    pub quota: Quota,
    /// The counted key.
    pub key: Key<'static>,
    /// The cost in units.
    pub cost: u64,
    /// True if the limit is never enforced.
    pub is_shadow: bool,
}

impl fmt::Debug for ExplainedLimit {
    /// Hides the key, because keys may be secrets.
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
