//! Divides a quota among instances that cannot ask each other.

use super::rate::gcd;
use super::{Algorithm, MILLISECOND, MOST_UNITS, Quota, YEAR, sound};
use crate::error::ConfigError;

impl Quota {
    /// Returns the share of one instance. See [`Quota::try_divided`].
    ///
    /// ```
    /// use std::time::Duration;
    /// use tower_quota_core::Quota;
    ///
    /// assert_eq!(Quota::per_second(10).burst(20).divided(4).capacity(), 5);
    /// assert_eq!(Quota::per_minute(100).fixed_window().divided(3), Quota::per_minute(33).fixed_window());
    /// // Five per minute for ten instances is one in two minutes for each instance.
    /// assert_eq!(Quota::per_minute(5).sliding_log().divided(10), Quota::new(1, Duration::from_secs(120)).sliding_log());
    /// ```
    #[track_caller]
    pub fn divided(self, instances: u32) -> Self {
        sound(self.try_divided(instances))
    }

    /// Returns the share of one instance, with the same algorithm.
    ///
    /// Rate and capacity are rounded down, but each share has at least one unit. A bucket has the exact rate, or
    /// full units per 366 days. A window becomes longer if necessary.
    ///
    /// # Errors
    /// Returns [`ConfigError`] if `instances` is 0, or if a share is less than one unit in 366
    /// days, fills up within a microsecond or cannot be counted exactly enough.
    pub fn try_divided(self, instances: u32) -> Result<Self, ConfigError> {
        if instances == 0 {
            return Err(ConfigError::ZeroInstances);
        }
        self.scaled(1, instances)
    }

    /// Returns this quota with a larger capacity. Buckets keep their rate, and windows get more
    /// units.
    ///
    /// # Errors
    /// Returns [`ConfigError`] if the algorithm cannot count this many units.
    pub fn try_raised(mut self, units: u64) -> Result<Self, ConfigError> {
        let capacity = self.capacity.saturating_add(units);
        if self.algorithm.is_bucket() {
            return self.try_burst(capacity);
        }
        if capacity > MOST_UNITS {
            let period = self.period();
            return Err(ConfigError::TooFast {
                units: capacity,
                period,
            });
        }
        (self.units, self.capacity) = (capacity, capacity);
        self.in_integers()
    }

    /// Returns a percentage of this quota, with the same algorithm and the same windows.
    ///
    /// Rate and capacity are rounded down. Returns `None` for less than a unit, or if the share cannot be counted.
    #[doc(hidden)]
    #[must_use]
    pub fn percent(self, percent: u32) -> Option<Self> {
        let has_units = part(self.capacity, percent, 100) > 0;
        has_units.then(|| self.scaled(percent, 100).ok()).flatten()
    }

    fn scaled(self, parts: u32, of: u32) -> Result<Self, ConfigError> {
        let rate = match self.algorithm.is_bucket() {
            true => bucket_rate(self.units * u64::from(parts), self.period, of.into()),
            false => window_rate(self.units, self.period, parts, of),
        };
        let mut share = self;
        share.capacity = part(self.capacity, parts, of).max(1);
        (share.units, share.period) = rate.ok_or(ConfigError::ShareTooSmall {
            units: self.units,
            period: self.period(),
            instances: of,
        })?;
        if self.algorithm == Algorithm::Concurrent {
            share.period = self.period;
        }
        if share.period != self.period {
            share.calendar = None;
        }
        // A bucket with a capacity other than its units cannot become a window.
        share.burst_given |= share.capacity != share.units;
        share.in_integers()
    }
}

fn part(units: u64, parts: u32, of: u32) -> u64 {
    // No quota has more than 2^50 units, so the product fits.
    units * u64::from(parts) / u64::from(of)
}

fn bucket_rate(units: u64, period: u64, parts: u64) -> Option<(u64, u64)> {
    let common = gcd(units, parts);
    let (units, parts) = (units / common, parts / common);
    if let Some(period) = within_year(period, parts) {
        return Some((units, period));
    }
    // Use the shortest period with this rate, if a quota can have such a period.
    let common = gcd(units, period);
    let shortest = within_year(period / common, parts);
    if let Some(shortest) = shortest.filter(|shortest| *shortest >= MILLISECOND) {
        return Some((units / common, shortest));
    }
    let most = u128::from(units) * u128::from(YEAR) / (u128::from(period) * u128::from(parts));
    let most = u64::try_from(most).ok()?;
    (most > 0).then_some((most, YEAR))
}

fn window_rate(units: u64, period: u64, parts: u32, of: u32) -> Option<(u64, u64)> {
    match part(units, parts, of) {
        0 => Some((1, within_year(period, u64::from(of).div_ceil(units))?)),
        whole => Some((whole, period)),
    }
}

fn within_year(period: u64, times: u64) -> Option<u64> {
    period.checked_mul(times).filter(|longer| *longer <= YEAR)
}
