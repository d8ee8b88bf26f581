//! Capabilities that a store may lack.

/// Something that a store of your own may not support. The cases that need it are skipped, and say so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Capability {
    /// Charges of several keys decided in one step.
    SeveralKeys,
    /// Requests that wait for their turn: leaky buckets, and patience.
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
    /// Peeks by [`Operation::Peek`](tower_quota_core::Operation::Peek).
    Peeks,
}
