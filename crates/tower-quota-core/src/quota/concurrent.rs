//! Concurrency limits, which count units in use at the same time.

use core::time::Duration;

use super::{Algorithm, Quota, sound};
use crate::error::ConfigError;
use crate::time::micros;

/// The shortest `ttl` in microseconds. Timers are too coarse for the renewals of shorter holds.
const SHORTEST_TTL: u64 = 100_000;

impl Quota {
    /// Limits the units in use at the same time. See [`Quota::try_concurrent`].
    ///
    /// ```
    /// use std::time::Duration;
    /// use tower_quota_core::Quota;
    ///
    /// let uploads = Quota::concurrent(10).ttl(Duration::from_secs(300));
    /// assert_eq!(uploads.capacity(), 10);
    /// ```
    #[track_caller]
    pub const fn concurrent(units: u64) -> Self {
        sound(Self::try_concurrent(units))
    }

    /// Limits the units in use at the same time, such as uploads or connections.
    ///
    /// A request holds its units until you refund its decision. The layer of `tower-quota` refunds
    /// the decision at the end of the response, and `Limiter::hold` when you drop the guard
    /// (feature `tokio`). A hold expires after 60 seconds ([`ttl`](Self::ttl)) unless you renew it.
    /// The layer and the guard renew their holds. If a full store evicts your client, the store refuses the client
    /// until the holds expire.
    ///
    /// In a Redis cluster, a request may have concurrency limits on one key only. Otherwise the store can never decide the
    /// request, and the layer answers with 500. Dry runs on another key only report.
    ///
    /// The retry time of a refusal is a guess of up to one second.
    /// [`count_refusals`](crate::Charge::count_refusals) has no effect.
    ///
    /// # Errors
    /// Returns [`ConfigError`] if `units` is 0 or above 10,000.
    pub const fn try_concurrent(units: u64) -> Result<Self, ConfigError> {
        Self::counted_by(Algorithm::Concurrent, units, Duration::from_secs(60))
    }

    /// Sets the time after which a hold expires. See [`Quota::try_ttl`].
    #[track_caller]
    pub const fn ttl(self, ttl: Duration) -> Self {
        sound(self.try_ttl(ttl))
    }

    /// Sets the time after which a hold expires unless you renew it.
    ///
    /// Choose a time longer than the pause between two renewals, or than your longest request.
    ///
    /// # Errors
    /// Returns [`ConfigError`] if the quota is not a concurrency limit, or if the time is not from
    /// 100 ms to 366 days or has a fraction of a microsecond.
    pub const fn try_ttl(self, ttl: Duration) -> Result<Self, ConfigError> {
        match self.algorithm {
            Algorithm::Concurrent if micros(ttl) < SHORTEST_TTL => Err(ConfigError::ShortTtl(ttl)),
            Algorithm::Concurrent => Self::counted_by(self.algorithm, self.units, ttl),
            algorithm => Err(ConfigError::NotConcurrent(algorithm)),
        }
    }
}
