//! Quotas, which are units per period and the algorithm that counts them.

pub(crate) mod algorithm;
mod calendar;
mod concurrent;
mod queue;
mod rate;
mod share;

use core::time::Duration;

pub use self::algorithm::Algorithm;
use self::calendar::Calendar;
pub(crate) use self::rate::MOST_GRAINS;
pub use self::rate::MOST_USED;
use crate::error::ConfigError;
use crate::time::{Timestamp, micros};

const MILLISECOND: u64 = 1_000;
const DAY: u64 = 86_400_000_000;
const WEEK: u64 = 7 * DAY;
const MONTH: u64 = 30 * DAY;
const COMMON_YEAR: u64 = 365 * DAY;
/// The longest period in microseconds.
pub const YEAR: u64 = 366 * DAY;
const UNITS_PER_MICRO: u64 = 10;
pub(crate) const MOST_UNITS: u64 = YEAR * UNITS_PER_MICRO;
/// The maximum number of units of a log.
pub const LONGEST_LOG: u64 = 10_000;

/// A number of units per period, counted by one of the [algorithms](Algorithm).
///
/// `Quota::per_second(10).burst(20)` admits 10 requests per second on average, and up to 20 at once after a pause.
/// The burst defaults to the units of one period.
///
/// Use [`Quota::new`] and the other plain methods for numbers in your code. They panic on the errors of the `try_`
/// methods, or do not compile in a `const`. Use the `try_` methods for your configuration.
///
/// You may change a quota while clients are counted. See [`Charge::new`](crate::Charge::new).
///
/// ```
/// use std::time::Duration;
/// use tower_quota_core::{Algorithm, ConfigError, Quota};
///
/// const LOGIN: Quota = Quota::new(5, Duration::from_secs(90)).sliding_log();
/// assert_eq!(LOGIN.capacity(), 5);
/// assert_eq!(Quota::per_second(10).burst(20).capacity(), 20);
///
/// // From configuration:
/// let quota = Quota::try_new(100, Duration::from_secs(60))?.try_burst(250)?.try_algorithm(Algorithm::Gcra)?;
/// assert_eq!(Quota::try_new(0, Duration::from_secs(60)), Err(ConfigError::ZeroUnits));
/// # Ok::<(), ConfigError>(())
/// ```
///
/// ```compile_fail
/// # use tower_quota_core::Quota;
/// const NO_UNITS: Quota = Quota::per_second(0); // does not compile: a quota of 0 admits nothing
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub struct Quota {
    algorithm: Algorithm,
    /// The offset of a fixed window, unless it starts with its first request.
    anchor: Option<u64>,
    calendar: Option<Calendar>,
    units: u64,
    period: u64,
    capacity: u64,
    burst_given: bool,
    grain: u64,
    refill: u64,
}

impl Quota {
    /// Makes a token bucket of `units` per period. See [`Quota::try_new`].
    #[track_caller]
    pub const fn new(units: u64, period: Duration) -> Self {
        sound(Self::try_new(units, period))
    }

    /// Makes a token bucket of `units` per second.
    #[track_caller]
    pub const fn per_second(units: u64) -> Self {
        Self::new(units, Duration::from_secs(1))
    }

    /// Makes a token bucket of `units` per minute.
    ///
    /// The full bucket and the refill of the first period admit up to twice as many. [`fixed_window`](Self::fixed_window) and
    /// [`burst`](Self::burst) admit fewer.
    #[track_caller]
    pub const fn per_minute(units: u64) -> Self {
        Self::new(units, Duration::from_secs(60))
    }

    /// Makes a token bucket of `units` per hour.
    ///
    /// The full bucket and the refill of the first period admit up to twice as many. [`fixed_window`](Self::fixed_window) and
    /// [`burst`](Self::burst) admit fewer.
    #[track_caller]
    pub const fn per_hour(units: u64) -> Self {
        Self::new(units, Duration::from_secs(3_600))
    }

    /// Makes a token bucket of `units` per 24 hours.
    #[track_caller]
    pub const fn per_day(units: u64) -> Self {
        Self::new(units, Duration::from_micros(DAY))
    }

    /// Makes a token bucket of `units` per 7 days.
    #[track_caller]
    pub const fn per_week(units: u64) -> Self {
        Self::new(units, Duration::from_micros(WEEK))
    }

    /// Makes a token bucket of `units` per 30 days. For calendar months, add `calendar`.
    #[track_caller]
    pub const fn per_month(units: u64) -> Self {
        Self::new(units, Duration::from_micros(MONTH))
    }

    /// Makes a token bucket of `units` per 365 days. For calendar years, add `calendar`.
    #[track_caller]
    pub const fn per_year(units: u64) -> Self {
        Self::new(units, Duration::from_micros(COMMON_YEAR))
    }

    /// Makes a token bucket of `units` per period.
    ///
    /// # Errors
    /// Returns [`ConfigError`] if `units` is 0 or above 10 million per second, if the period is not
    /// from 1 ms to 366 days in whole microseconds, or if the rate cannot be counted to within 1
    /// part per million.
    pub const fn try_new(units: u64, period: Duration) -> Result<Self, ConfigError> {
        Self::counted_by(Algorithm::TokenBucket, units, period)
    }

    const fn counted_by(
        algorithm: Algorithm,
        units: u64,
        period: Duration,
    ) -> Result<Self, ConfigError> {
        let whole = micros(period);
        if has_fraction(period) || whole < MILLISECOND || whole > YEAR {
            return Err(ConfigError::Period(period));
        }
        if units == 0 {
            return Err(ConfigError::ZeroUnits);
        }
        if units > whole * UNITS_PER_MICRO {
            return Err(ConfigError::TooFast { units, period });
        }
        Self::of(algorithm, units, whole).in_integers()
    }

    /// Sets the capacity of a bucket. See [`Quota::try_burst`].
    #[track_caller]
    pub const fn burst(self, burst: u64) -> Self {
        sound(self.try_burst(burst))
    }

    /// Sets the capacity of a bucket, or the length of a [queue](Self::queue).
    ///
    /// # Errors
    /// Returns [`ConfigError`] if `burst` is 0, fills up within a microsecond or cannot be counted
    /// exactly enough, or if the algorithm is a window.
    pub const fn try_burst(mut self, burst: u64) -> Result<Self, ConfigError> {
        if burst == 0 {
            return Err(ConfigError::ZeroBurst);
        }
        self.capacity = burst;
        self.burst_given = true;
        self.in_integers()
    }

    /// Counts by an algorithm.
    ///
    /// # Errors
    /// Returns [`ConfigError`] if you set a burst and the algorithm is a window, if a log would
    /// exceed 10,000 units, or if the algorithm cannot count the numbers to within 1 part per
    /// million.
    pub const fn try_algorithm(mut self, algorithm: Algorithm) -> Result<Self, ConfigError> {
        self.algorithm = algorithm;
        self.anchor = Some(0);
        if !self.burst_given {
            self.capacity = self.units;
        }
        if !matches!(algorithm, Algorithm::FixedWindow) {
            self.calendar = None;
        }
        self.in_integers()
    }

    /// Counts by [`Algorithm::TokenBucket`], the default.
    #[track_caller]
    pub const fn token_bucket(self) -> Self {
        sound(self.try_algorithm(Algorithm::TokenBucket))
    }

    /// Counts by [`Algorithm::Gcra`].
    #[track_caller]
    pub const fn gcra(self) -> Self {
        sound(self.try_algorithm(Algorithm::Gcra))
    }

    /// Counts by [`Algorithm::LeakyBucket`].
    #[track_caller]
    pub const fn leaky_bucket(self) -> Self {
        sound(self.try_algorithm(Algorithm::LeakyBucket))
    }

    /// Counts by [`Algorithm::FixedWindow`].
    #[track_caller]
    pub const fn fixed_window(self) -> Self {
        sound(self.try_algorithm(Algorithm::FixedWindow))
    }

    /// Counts by [`Algorithm::SlidingWindow`].
    #[track_caller]
    pub const fn sliding_window(self) -> Self {
        sound(self.try_algorithm(Algorithm::SlidingWindow))
    }

    /// Counts by [`Algorithm::SlidingLog`].
    #[track_caller]
    pub const fn sliding_log(self) -> Self {
        sound(self.try_algorithm(Algorithm::SlidingLog))
    }

    /// Shifts a fixed window. See [`Quota::try_offset`].
    #[track_caller]
    pub const fn offset(self, offset: Duration) -> Self {
        sound(self.try_offset(offset))
    }

    /// Shifts a fixed window. For example, an offset of 6 hours starts each day at 06:00 UTC.
    ///
    /// # Errors
    /// Returns [`ConfigError`] if the quota is not a fixed window, or if the offset is not shorter
    /// than the period in whole microseconds.
    pub const fn try_offset(self, offset: Duration) -> Result<Self, ConfigError> {
        if micros(offset) >= self.period || has_fraction(offset) {
            let period = self.period();
            return Err(ConfigError::Offset { offset, period });
        }
        self.with_anchor(Some(micros(offset)))
    }

    /// Starts a fixed window at its first request, instead of at a multiple of the period.
    #[track_caller]
    pub const fn from_first_request(self) -> Self {
        sound(self.with_anchor(None))
    }

    /// Returns the algorithm.
    pub const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Returns the units per period.
    pub const fn units(&self) -> u64 {
        self.units
    }

    /// Returns the period, or the length of the window.
    pub const fn period(&self) -> Duration {
        Duration::from_micros(self.period)
    }

    /// Returns the burst of a bucket or the units of a window. No request may cost more.
    pub const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Returns the time in which an empty bucket fills up, rounded up, or a window passes.
    pub const fn window(&self) -> Duration {
        match self.refill {
            0 => self.period(),
            refill => Duration::from_micros((self.capacity * self.grain).div_ceil(refill)),
        }
    }

    /// Returns the offset of a fixed window in microseconds, unless it starts with its first request.
    pub const fn window_offset(&self) -> Option<u64> {
        self.anchor
    }

    /// Returns the end of the window at an instant, the same for all clients.
    ///
    /// Only fixed windows have such an end, calendar windows included, unless they
    /// [start](Self::window_offset) with their first request.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tower_quota_core::{Quota, Timestamp};
    ///
    /// let noon = Timestamp::from_micros(1_763_726_400_000_000);
    /// let daily = Quota::per_day(100).fixed_window();
    /// assert_eq!(daily.window_ends(noon), Some(noon + Duration::from_secs(12 * 3_600)));
    /// assert_eq!(Quota::per_day(100).window_ends(noon), None);
    /// ```
    pub fn window_ends(&self, now: Timestamp) -> Option<Timestamp> {
        if self.algorithm != Algorithm::FixedWindow {
            return None;
        }
        let present = self.at(now);
        let (period, offset, now) = (present.period, present.anchor?, now.as_micros());
        let until_end = period - (now % period + period - offset) % period;
        Some(Timestamp::from_micros(now.saturating_add(until_end)))
    }

    /// Returns the grains in a unit of a bucket, or the microseconds in a step of a sliding window.
    ///
    /// A bucket counts in grains, and a sliding window in steps.
    pub const fn grain(&self) -> u64 {
        self.grain
    }

    /// Returns the grains that a bucket gets back in each microsecond, or 0 for a window.
    pub const fn refill(&self) -> u64 {
        self.refill
    }

    pub(crate) const fn unit(&self) -> u64 {
        match self.refill {
            0 => 1,
            _ => self.grain,
        }
    }

    pub(crate) const fn period_micros(&self) -> u64 {
        self.period
    }

    /// Returns the time in which a window or log gives back units at its rate, at most its period.
    pub(crate) fn refill_micros(&self, units: u64) -> u64 {
        let micros = u128::from(self.period) * u128::from(units);
        let micros = micros.div_ceil(u128::from(self.capacity));
        micros
            .try_into()
            .map_or(self.period, |micros: u64| micros.min(self.period))
    }

    pub(crate) const fn reduced(&self) -> Self {
        let mut reduced = *self;
        if self.refill > 0 {
            reduced.algorithm = Algorithm::TokenBucket;
            reduced.burst_given = true;
            // Grains per microsecond are units per grain of microseconds.
            reduced.units = self.refill;
            reduced.period = self.grain;
        }
        reduced
    }

    /// Returns the quota of stored numbers. `pace` is the refill or the period.
    pub(crate) const fn from_stored(
        algorithm: Algorithm,
        capacity: u64,
        grain: u64,
        pace: u64,
        anchor: Option<u64>,
    ) -> Self {
        let mut quota = Self::of(algorithm, capacity, pace);
        quota.grain = grain;
        quota.anchor = anchor;
        if algorithm.is_bucket() {
            quota.refill = pace;
        }
        quota.reduced()
    }

    pub(crate) fn is_in_range(&self) -> bool {
        // Allow a day more than a year, because a zone that moves makes a calendar year longer.
        let has_pace = self.refill > 0 || (MILLISECOND..=YEAR + DAY).contains(&self.period);
        self.capacity > 0 && self.grain > 0 && has_pace
    }

    #[inline(always)]
    pub(crate) fn counts_like(&self, other: &Self) -> bool {
        let is_same = self.capacity == other.capacity
            && self.grain == other.grain
            && self.refill == other.refill;
        // Compare windows as they are. Only buckets, which have a refill, have unreduced forms.
        is_same && (self.refill > 0 || self == other)
    }

    /// Returns whether the start of a window follows from the present instant.
    pub(crate) const fn has_aligned_windows(&self) -> bool {
        match self.algorithm {
            Algorithm::FixedWindow => self.anchor.is_some() && self.calendar.is_none(),
            Algorithm::SlidingWindow => true,
            _ => false,
        }
    }

    pub(crate) fn has_windows_of(&self, other: &Self) -> bool {
        self.refill == 0
            && self.algorithm == other.algorithm
            && (self.period == other.period || self.algorithm == Algorithm::Concurrent)
            && self.grain == other.grain
            && self.anchor == other.anchor
    }

    /// Returns the remaining units with which a charge within the capacity waits at most `max_wait` microseconds.
    pub(crate) fn needed_before(&self, units: u64, max_wait: u64) -> u64 {
        let needed = |units: u64| {
            let grains = (units * self.grain).saturating_sub(max_wait * self.refill);
            grains.div_ceil(self.grain)
        };
        match self.algorithm {
            // The charge needs a place in the queue, and waits for the turns of all earlier charges.
            Algorithm::LeakyBucket => units.max(needed(self.capacity)),
            _ => needed(units),
        }
    }

    const fn of(algorithm: Algorithm, units: u64, period: u64) -> Self {
        Self {
            algorithm,
            anchor: Some(0),
            calendar: None,
            units,
            period,
            capacity: units,
            burst_given: false,
            grain: 1,
            refill: 0,
        }
    }

    const fn with_anchor(mut self, anchor: Option<u64>) -> Result<Self, ConfigError> {
        if !matches!(self.algorithm, Algorithm::FixedWindow) || self.calendar.is_some() {
            return Err(ConfigError::NotAFixedWindow(self.algorithm));
        }
        self.anchor = anchor;
        Ok(self)
    }

    const fn in_integers(mut self) -> Result<Self, ConfigError> {
        let (units, period, capacity) = (self.units, self.period, self.capacity);
        if self.burst_given && !self.algorithm.is_bucket() {
            return Err(ConfigError::BurstOnWindow(self.algorithm));
        }
        let counted = match self.algorithm {
            Algorithm::TokenBucket | Algorithm::Gcra | Algorithm::LeakyBucket => {
                rate::grains(units, period, capacity)
            }
            Algorithm::SlidingWindow => rate::weight_step(units, period),
            Algorithm::SlidingLog | Algorithm::Concurrent if units > LONGEST_LOG => {
                return Err(ConfigError::LogTooLong { units });
            }
            _ => Some((1, 0)),
        };
        let Some((grain, refill)) = counted else {
            return Err(ConfigError::NotRepresentable {
                units,
                period: self.period(),
                capacity,
            });
        };
        // Refuse a bucket that fills up within a microsecond. The overflow would keep it below its
        // rate.
        if capacity * grain < refill {
            return Err(ConfigError::BurstTooSmall {
                burst: capacity,
                least: refill.div_ceil(grain),
            });
        }
        self.grain = grain;
        self.refill = refill;
        Ok(self)
    }
}

const fn has_fraction(micros: Duration) -> bool {
    !micros.subsec_nanos().is_multiple_of(1_000)
}

#[track_caller]
const fn sound(quota: Result<Quota, ConfigError>) -> Quota {
    let sound = match &quota {
        Ok(quota) => *quota,
        #[expect(
            clippy::panic,
            reason = "documented: numbers written in code fail while compiling or at start"
        )]
        Err(error) => panic!("{}", error.reason()),
    };
    // Forget the value, because a constant cannot drop an error that could own memory.
    core::mem::forget(quota);
    sound
}
