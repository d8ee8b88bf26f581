//! The choice of a limit for requests over its quota.

use core::time::Duration;

/// The choice of a limit for requests over its quota: see [`Limit::over`](crate::Limit::over).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Over {
    /// Refuses the request.
    #[default]
    Refuse,
    /// Lets the request through, and tells the handler by [`Flagged`](crate::Flagged).
    ///
    /// Show a challenge, or answer from a cache. Flagged requests take no units. The limit is in no header field, and it
    /// skips requests without a key unless you set [`when_missing`](crate::Limit::when_missing).
    Flag,
    /// Lets the request wait, longer with each unit over the quota: a tarpit.
    ///
    /// All requests take units, also requests that another limit refuses. So the wait grows while a client keeps sending,
    /// and shrinks as the quota refills. A waiting request takes a [place](crate::RateLimitLayer::max_waiting) in the queue
    /// of the layer, and is refused if no place is free.
    Delay {
        /// The wait for each unit over the quota.
        step: Duration,
        /// The longest wait.
        most: Duration,
    },
}
