//! Concurrency limits: quotas of units in use at the same time.

use core::time::Duration;

use super::{Algorithm, Quota, sound};
use crate::error::ConfigError;

/// The default time after which a hold expires.
const DEFAULT_TTL: Duration = Duration::from_secs(60);

impl Quota {
    /// Limits the units in use at the same time, such as uploads or connections.
    ///
    /// An admitted request holds its units until you refund its decision. `Limiter::hold` does that for you (feature
    /// `tokio`). Layers do not release holds yet, so use a `Limiter` in your handlers. A hold expires after 60 seconds
    /// unless you renew it, so a program that has crashed holds nothing for long. [`ttl`](Self::ttl) sets that time.
    ///
    /// Nobody knows when a hold is released, so the retry time of a refusal is a guess. It is one second, or less if a
    /// hold expires sooner. [`LimitStatus::reset_after`](crate::LimitStatus::reset_after) is the time until the last
    /// hold expires. Refused requests hold nothing, so [`count_refusals`](crate::Charge::count_refusals) has no
    /// effect.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tower_quota_core::Quota;
    ///
    /// let uploads = Quota::concurrent(10).ttl(Duration::from_secs(300));
    /// assert_eq!(uploads.capacity(), 10);
    /// ```
    ///
    /// # Panics
    /// When `units` is 0 or more than 10,000.
    #[must_use]
    #[track_caller]
    pub const fn concurrent(units: u64) -> Self {
        sound(Self::try_concurrent(units))
    }

    /// Does what [`Quota::concurrent`] does, for a number from a configuration.
    ///
    /// # Errors
    /// [`ConfigError`] when `units` is 0 or more than 10,000.
    pub const fn try_concurrent(units: u64) -> Result<Self, ConfigError> {
        Self::counted_by(Algorithm::Concurrent, units, DEFAULT_TTL)
    }

    /// Sets the time after which a hold expires unless it is renewed.
    ///
    /// Choose a time longer than the pause between two renewals, or than the longest request if you do not renew.
    ///
    /// # Panics
    /// When this is not a concurrency limit, or the time is out of range; see [`Quota::try_ttl`].
    #[must_use]
    #[track_caller]
    pub const fn ttl(self, ttl: Duration) -> Self {
        sound(self.try_ttl(ttl))
    }

    /// Does what [`Quota::ttl`] does, for a span from a configuration.
    ///
    /// # Errors
    /// [`ConfigError`] when this is not a concurrency limit, or the time is not from 1 ms to 366 days or has a fraction
    /// of a microsecond.
    pub const fn try_ttl(self, ttl: Duration) -> Result<Self, ConfigError> {
        if !matches!(self.algorithm, Algorithm::Concurrent) {
            return Err(ConfigError::NotConcurrent(self.algorithm));
        }
        Self::counted_by(Algorithm::Concurrent, self.units, ttl)
    }
}
