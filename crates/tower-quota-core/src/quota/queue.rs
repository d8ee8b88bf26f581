//! The queue of a leaky bucket.

use core::time::Duration;

use super::{Algorithm, MOST_GRAINS, Quota, sound};
use crate::error::ConfigError;
use crate::time::micros;

impl Quota {
    /// Sets the places in the queue of a leaky bucket: the units that may wait for their turn at once.
    ///
    /// Without it the queue has room for all requests that accept the wait, see [`for_waits_of`](Self::for_waits_of).
    ///
    /// ```
    /// use tower_quota_core::Quota;
    ///
    /// let quota = Quota::per_second(50).leaky_bucket().queue(100);
    /// assert_eq!(quota.capacity(), 100);
    /// ```
    ///
    /// # Panics
    /// When this is not a leaky bucket, or `places` is invalid as a [`burst`](Self::burst).
    #[must_use]
    #[track_caller]
    pub const fn queue(self, places: u64) -> Self {
        sound(self.try_queue(places))
    }

    /// Does what [`Quota::queue`] does, for a number from a configuration.
    ///
    /// # Errors
    /// [`ConfigError`] when this is not a leaky bucket, or `places` is invalid as a burst.
    pub const fn try_queue(self, places: u64) -> Result<Self, ConfigError> {
        match self.algorithm {
            Algorithm::LeakyBucket => self.try_burst(places),
            algorithm => Err(ConfigError::NotALeakyBucket(algorithm)),
        }
    }

    /// Makes the queue of a leaky bucket as long as a longest wait, unless its length was given.
    ///
    /// It then has a place for each unit whose turn comes within this wait, and never fewer than the units of a period.
    /// Limits and limiters do this with their longest wait. A [`Charge`](crate::Charge) does not change its quota. Any
    /// other quota is returned unchanged.
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
    #[must_use]
    pub const fn for_waits_of(mut self, longest: Duration) -> Self {
        if self.burst_given || !matches!(self.algorithm, Algorithm::LeakyBucket) {
            return self;
        }
        let turns = micros(longest) as u128 * self.refill as u128 / self.grain as u128 + 1;
        // The longest queue that is counted in the same grains.
        let most = MOST_GRAINS / self.grain;
        #[expect(clippy::cast_possible_truncation, reason = "less than `most`")]
        let places = if turns < most as u128 {
            turns as u64
        } else {
            most
        };
        self.capacity = if places > self.units {
            places
        } else {
            self.units
        };
        self
    }
}
