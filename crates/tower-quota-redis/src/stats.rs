//! Figures of a store, to be shown and watched.

use crate::error_counts::RedisErrorCounts;

/// The counts of a [`RedisStore`](crate::RedisStore) since it was made, and its present state. Cheap to get.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RedisStats {
    /// Partitions whose breaker is closed: their server is asked.
    pub closed_partitions: usize,
    /// Partitions whose breaker is open or tries one call: decisions about their keys fail at once.
    pub open_partitions: usize,
    /// Times that a breaker has opened. A trial that fails opens it again.
    pub breaker_openings: u64,
    /// Times that a breaker has closed after it was open.
    pub breaker_closings: u64,
    /// Decisions that wait for a call.
    pub queued: usize,
    /// Calls under way.
    pub calls_under_way: usize,
    /// Decisions sent so far. A decision about keys in several partitions counts once for each step it takes.
    pub decisions: u64,
    /// Calls made so far. `decisions` over `calls` is how many a call carries.
    pub calls: u64,
    /// Decisions that ended in an error, by its kind.
    pub errors: RedisErrorCounts,
}
