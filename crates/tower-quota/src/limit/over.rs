use core::time::Duration;

/// The choice of a limit for requests over the quota. See [`Limit::over`](crate::Limit::over).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Over {
    /// Refuses the request.
    #[default]
    Refuse,
    /// Lets the request through. The handler finds [`Flagged`](crate::Flagged).
    ///
    /// Your handler can show a challenge, or answer from a cache. Flagged requests take no units and have no header
    /// fields. Requests without a key are skipped unless you set [`when_missing`](crate::Limit::when_missing).
    ///
    /// In an outage, [`OnStoreFailure::Refuse`](crate::OnStoreFailure::Refuse) flags every request, so a challenge
    /// fails closed. [`OnStoreFailure::Local`](crate::OnStoreFailure::Local) flags the requests over this instance's
    /// share of the quota. By default no request is flagged.
    Flag,
    /// Lets the request wait, longer with each unit over the quota (a tarpit).
    ///
    /// All requests take units, even if another limit refuses, until the wait is the longest. The layer refuses requests without a
    /// [place](crate::RateLimitLayer::max_waiting) in the queue.
    Delay {
        /// The wait for each unit over the quota. A step of zero is a [`ConfigError`](crate::ConfigError).
        step: Duration,
        /// The longest wait.
        most: Duration,
    },
}
