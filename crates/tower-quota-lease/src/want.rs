//! Wants: the leases that pools ask for, in a runtime.

use std::sync::Arc;

use tokio::runtime::Handle;
use tower_quota_core::Name;

use crate::plan::Plan;

/// A lease that is due.
#[derive(Clone, Debug)]
pub(crate) struct Want {
    pub(crate) limit: Name,
    pub(crate) plan: Arc<Plan>,
    /// The number of its pool.
    pub(crate) serial: u64,
    pub(crate) units: u64,
}

/// Returns how long a call for a lease of this term may take, in microseconds. A lease that comes after its end is
/// refunded at once.
pub(crate) fn call_deadline(term: u64) -> u64 {
    term.max(1_000_000)
}

/// Returns whether this thread is in a runtime. Leases are asked for, and ended, in its tasks.
pub(crate) fn has_runtime() -> bool {
    Handle::try_current().is_ok()
}
