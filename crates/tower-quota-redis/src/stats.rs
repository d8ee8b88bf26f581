use crate::error_counts::RedisErrorCounts;

/// The statistics of a [`RedisStore`](crate::RedisStore) since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RedisStats {
    /// The number of partitions with a closed breaker.
    pub closed_partitions: usize,
    /// The number of partitions with an open breaker. Decisions about their keys fail at once.
    pub open_partitions: usize,
    /// The number of times that a breaker has opened, including failed probes.
    pub breaker_openings: u64,
    /// The number of times that a breaker has closed.
    pub breaker_closings: u64,
    /// The number of decisions that wait for a call.
    pub queued: usize,
    /// The number of calls in flight.
    pub calls_under_way: usize,
    /// The number of decisions sent. A decision over several partitions counts once for each step.
    pub decisions: u64,
    /// The number of calls. Divide `decisions` by `calls` for the decisions of a call.
    pub calls: u64,
    /// The microseconds by which the server's clock is ahead of this machine's, as of the last call.
    ///
    /// The figure includes the latency of the answer. For several partitions, you get the largest
    /// difference.
    pub clock_difference_micros: i64,
    /// The number of decisions that ended in an error, by kind.
    pub errors: RedisErrorCounts,
}
