use tower_quota_core::{Key, Name, Quota};

use crate::limit::Over;
use crate::response::Reason;

/// What a policy would do with a request, before any count.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Explained {
    /// The request is not counted.
    Skipped,
    /// The request is not counted, and never blocked.
    Allowed,
    /// The request is refused for this reason, unless a limit refuses first.
    Refused(Reason<'static>),
    /// These limits decide. The list is empty if no limit applies.
    Limited(Vec<ExplainedLimit>),
}

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
    /// Whether the limit is a shadow, which is never enforced.
    pub is_shadow: bool,
    /// What happens to requests over the quota.
    pub over: Over,
}
