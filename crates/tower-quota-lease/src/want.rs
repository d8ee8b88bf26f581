//! Wants: the leases that pools ask for.

use std::sync::Arc;

use tower_quota_core::Name;

use crate::plan::Plan;

/// A lease that is due.
#[derive(Debug)]
pub(crate) struct Want {
    pub(crate) limit: Name,
    pub(crate) plan: Arc<Plan>,
    /// The number of its pool.
    pub(crate) serial: u64,
    pub(crate) units: u64,
}
