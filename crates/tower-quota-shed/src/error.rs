use core::time::Duration;

/// A mistake in the options of a layer. The message says how to fix the option.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The limits of requests in progress are not in order.
    #[error(
        "a limit from {floor} to {ceiling} that starts at {start} is not in order: choose 1 <= floor <= start <= ceiling <= 1000000"
    )]
    LimitRange {
        /// The lowest limit.
        floor: usize,
        /// The first limit.
        start: usize,
        /// The highest limit.
        ceiling: usize,
    },
    /// The queue has no place, too many places, no time, or too much time.
    #[error(
        "a queue for {0} requests of {1:?} is out of range: choose 1 to 10000 requests, and 1 ms to 60 s"
    )]
    Queue(usize, Duration),
    /// The retry times are not in order.
    #[error(
        "retry times from {0:?} to {1:?} are not in order: choose 1 s <= least <= most <= 1 hour"
    )]
    RetryAfter(Duration, Duration),
    /// The text cannot be the name of a header.
    #[error("{0:?} cannot be the name of a header: give a token such as \"x-priority\"")]
    HeaderName(String),
}
