use tower_quota_core::{Key, Name, Quota};

/// A limit that decides a request.
#[derive(Clone, Debug, PartialEq, Eq)]
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
