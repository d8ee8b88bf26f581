use crate::error_counts::RedisErrorCounts;

/// The statistics of a [`RedisStore`](crate::RedisStore) since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RedisStats {
    /// Partitions with a closed breaker.
    pub closed_partitions: usize,
    /// Partitions with an open breaker. Decisions about their keys fail at once.
    pub open_partitions: usize,
    /// Times that a breaker has opened, failed trials included.
    pub breaker_openings: u64,
    /// Times that a breaker has closed.
    pub breaker_closings: u64,
    /// Decisions that wait for a call.
    pub queued: usize,
    /// Calls in flight.
    pub calls_under_way: usize,
    /// Decisions sent. A decision over several partitions counts once for each step.
    pub decisions: u64,
    /// Calls made. Divide `decisions` by `calls` for the decisions of a call.
    pub calls: u64,
    /// The microseconds by which the server's clock is ahead of this machine's, as of the last call.
    ///
    /// Includes the latency of the answer. For several partitions, you get the largest difference.
    pub clock_difference_micros: i64,
    /// Decisions that ended in an error.
    pub errors: RedisErrorCounts,
}
