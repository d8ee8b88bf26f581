//! The queue of a leaky bucket.

use core::time::Duration;

use super::{Algorithm, MOST_GRAINS, Quota, sound};
use crate::error::ConfigError;
use crate::time::micros;

impl Quota {
    /// Sets the length of the queue. See [`Quota::try_queue`].
    ///
    /// ```
    /// use tower_quota_core::Quota;
    ///
    /// let quota = Quota::per_second(50).leaky_bucket().queue(100);
    /// assert_eq!(quota.capacity(), 100);
    /// ```
    #[track_caller]
    pub const fn queue(self, places: u64) -> Self {
        sound(self.try_queue(places))
    }

    /// Sets the maximum number of units that wait for their turn in a leaky bucket.
    ///
    /// By default, the queue has room for all requests that accept the wait. See
    /// [`for_waits_of`](Self::for_waits_of).
    ///
    /// # Errors
    /// Returns [`ConfigError`] if the quota is not a leaky bucket, or if `places` is invalid as a
    /// [burst](Self::try_burst).
    pub const fn try_queue(self, places: u64) -> Result<Self, ConfigError> {
        match self.algorithm {
            Algorithm::LeakyBucket => self.try_burst(places),
            algorithm => Err(ConfigError::NotALeakyBucket(algorithm)),
        }
    }

    /// Makes the queue of a leaky bucket long enough for a wait, unless you set its length.
    ///
    /// The queue has at least the units of a period. Limits and limiters call this method. Call it yourself before
    /// you build a [`Charge`](crate::Charge).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tower_quota_core::Quota;
    ///
    /// let minute = Duration::from_secs(60);
    /// assert_eq!(Quota::per_second(5).leaky_bucket().for_waits_of(minute).capacity(), 301);
    /// assert_eq!(Quota::per_second(5).leaky_bucket().queue(9).for_waits_of(minute).capacity(), 9);
    /// assert_eq!(Quota::per_second(5).for_waits_of(minute).capacity(), 5);
    /// ```
    pub const fn for_waits_of(mut self, longest: Duration) -> Self {
        if self.burst_given || !matches!(self.algorithm, Algorithm::LeakyBucket) {
            return self;
        }
        let turns = micros(longest).saturating_mul(self.refill) / self.grain;
        // A longer queue would need other grains.
        let most = MOST_GRAINS / self.grain;
        self.capacity = if turns >= most {
            most
        } else if turns >= self.units {
            turns + 1
        } else {
            self.units
        };
        self
    }
}
