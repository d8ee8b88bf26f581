//! Division of a quota among instances that cannot ask each other.

use super::rate::gcd;
use super::{Algorithm, Quota, YEAR, sound};
use crate::error::ConfigError;

impl Quota {
    /// Returns one instance's share of this quota: the rate and the capacity divided, by the same algorithm.
    ///
    /// Both are rounded down, a capacity to no less than 1. All instances together admit at most this quota's rate in
    /// the long run, and at most its capacity at once. If there are more instances than units, each may admit one unit.
    ///
    /// A bucket's rate is divided exactly if the numbers allow it. Otherwise it is rounded down to full units per 366
    /// days. A window keeps its length and its alignment, and its units are rounded down. If there is less than one unit
    /// for each instance, the window is made as many periods long as one unit takes. A calendar quota then becomes a
    /// fixed window of that length. A concurrency limit keeps its expiry, and each instance admits at least one unit.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tower_quota_core::Quota;
    ///
    /// assert_eq!(Quota::per_second(10).burst(20).divided(4).capacity(), 5);
    /// assert_eq!(Quota::per_minute(100).fixed_window().divided(3), Quota::per_minute(33).fixed_window());
    /// // Five a minute among ten: each has one in two minutes.
    /// assert_eq!(Quota::per_minute(5).sliding_log().divided(10), Quota::new(1, Duration::from_secs(120)).sliding_log());
    /// ```
    ///
    /// # Panics
    /// When a share cannot be counted; see [`Quota::try_divided`].
    #[must_use]
    #[track_caller]
    pub const fn divided(self, instances: u32) -> Self {
        sound(self.try_divided(instances))
    }

    /// Does what [`Quota::divided`] does, for a number from a configuration.
    ///
    /// # Errors
    /// [`ConfigError`] when there are no instances, when each would get less than one unit in 366
    /// days, when its part of the burst would fill up within a microsecond, or when a share that had to be rounded
    /// cannot be counted exactly enough.
    pub const fn try_divided(self, instances: u32) -> Result<Self, ConfigError> {
        if instances == 0 {
            return Err(ConfigError::ZeroInstances);
        }
        let parts = instances as u64;
        let divided = match self.algorithm.is_bucket() {
            true => bucket_rate(self.units, self.period, parts),
            false => window_rate(self.units, self.period, parts),
        };
        let Some((units, period)) = divided else {
            return Err(ConfigError::ShareTooSmall {
                units: self.units,
                period: self.period(),
                instances,
            });
        };
        let mut share = self;
        if period != self.period {
            share.calendar = None;
        }
        (share.units, share.period) = (units, period);
        if matches!(self.algorithm, Algorithm::Concurrent) {
            share.period = self.period;
        }
        share.capacity = match self.algorithm.is_bucket() {
            true if self.capacity < parts => 1,
            true => self.capacity / parts,
            false => units,
        };
        // A bucket whose capacity is no longer its units cannot be made a window.
        share.burst_given |= share.capacity != units;
        share.in_integers()
    }
}

/// Returns the rate `units / (period * parts)` as units and a period that a quota may have.
///
/// Returns `None` if it is less than one unit in 366 days.
const fn bucket_rate(units: u64, period: u64, parts: u64) -> Option<(u64, u64)> {
    let common = gcd(units, parts);
    let (units, parts) = (units / common, parts / common);
    if let Some(period) = within_year(period, parts) {
        return Some((units, period));
    }
    // The shortest period there is at this rate, if a quota may have it.
    let common = gcd(units, period);
    let (fewest, shortest) = (units / common, period / common);
    if let Some(shortest) = within_year(shortest, parts)
        && shortest >= super::MILLISECOND
    {
        return Some((fewest, shortest));
    }
    let most = units as u128 * YEAR as u128 / (period as u128 * parts as u128);
    // No more than `units`, since the period times the parts is above a year.
    #[expect(clippy::cast_possible_truncation, reason = "at most `units`")]
    let most = most as u64;
    if most == 0 { None } else { Some((most, YEAR)) }
}

/// Returns the units and the length of one instance's window.
///
/// Returns `None` if one unit takes more than 366 days.
const fn window_rate(units: u64, period: u64, parts: u64) -> Option<(u64, u64)> {
    if units >= parts {
        return Some((units / parts, period));
    }
    match within_year(period, parts.div_ceil(units)) {
        Some(period) => Some((1, period)),
        None => None,
    }
}

const fn within_year(period: u64, times: u64) -> Option<u64> {
    match period.checked_mul(times) {
        Some(longer) if longer <= YEAR => Some(longer),
        _ => None,
    }
}
