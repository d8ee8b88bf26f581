//! Capabilities that a store may lack.

use tower_quota_core::Algorithm;

/// A feature that a custom store may not support. Cases that need it are skipped, and say so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Capability {
    /// Charges of several keys decided in one step.
    SeveralKeys,
    /// Requests that wait for their turn: leaky buckets, and `max_wait`.
    Waiting,
    /// Sliding window logs.
    SlidingLogs,
    /// Refused requests that are charged.
    CountedRefusals,
    /// Limits that are evaluated and not enforced.
    Shadows,
    /// Penalties for clients who keep asking.
    Penalties,
    /// Charges that take as much as is left.
    PartialGrants,
    /// Concurrency limits, whose units are held until they are released or expire.
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
