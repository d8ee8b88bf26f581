//! Lists the capabilities that a store may lack.

use tower_quota_core::Algorithm;

/// A feature that your store may not support. The suite skips the cases that need the feature, and
/// prints their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Capability {
    /// Decisions about charges of several keys in one step.
    SeveralKeys,
    /// Requests that wait for their turn, by leaky buckets and `max_wait`.
    Waiting,
    /// Sliding window logs.
    SlidingLogs,
    /// Charges of refused requests.
    CountedRefusals,
    /// Limits that are evaluated but never enforced.
    Shadows,
    /// Penalties for clients that keep sending.
    Penalties,
    /// Charges that take the remaining units, up to the cost.
    PartialGrants,
    /// Concurrency limits, which hold units until a release or an expiry.
    Holds,
    /// Charges that are reported or forced, and debts in statuses.
    ChargeModes,
    /// Peeks by [`Operation::Peek`](tower_quota_core::Operation::Peek).
    Peeks,
}

impl Capability {
    /// Returns whether a store without these capabilities supports an algorithm.
    pub(crate) fn allow(lacks: &[Self], algorithm: Algorithm) -> bool {
        let need = match algorithm {
            Algorithm::LeakyBucket => Self::Waiting,
            Algorithm::SlidingLog => Self::SlidingLogs,
            Algorithm::Concurrent => Self::Holds,
            _ => return true,
        };
        !lacks.contains(&need)
    }
}
