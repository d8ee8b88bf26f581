//! Quotas: units per period, and the algorithm that counts them.

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
use crate::time::micros;

const MILLISECOND: u64 = 1_000;
const DAY: u64 = 86_400_000_000;
const WEEK: u64 = 7 * DAY;
const MONTH: u64 = 30 * DAY;
const COMMON_YEAR: u64 = 365 * DAY;
/// The longest period of a quota.
pub(crate) const YEAR: u64 = 366 * DAY;
/// 10 million units per second.
const UNITS_PER_MICRO: u64 = 10;
/// The most units of a log, and the most stamps that it holds.
pub const LONGEST_LOG: u64 = 10_000;

/// A quota: units per period, counted by one of the algorithms. Its numbers are checked when it is built.
///
/// `Quota::per_second(10).burst(20)` admits 10 requests in each second on average, and up to 20 at once after a pause.
/// The burst of a bucket is its capacity. The default is the units of one period.
///
/// You may change a quota while clients are counted; see [`Charge::new`](crate::Charge::new).
///
/// The plain methods are for numbers in code. They are `const`: an invalid number panics with the reason, or does not
/// compile in a `const`. For numbers from a configuration use [`Quota::try_new`] and the other `try_` methods, which
/// return a [`ConfigError`] that names the value.
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
/// const NOTHING: Quota = Quota::per_second(0); // does not compile: a quota of 0 admits nothing
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Quota {
    algorithm: Algorithm,
    /// The offset of a fixed window in microseconds; `None` if it starts with its first request.
    anchor: Option<u64>,
    /// Where the windows of a fixed window begin and end, instead of the anchor and the period.
    calendar: Option<Calendar>,
    units: u64,
    period: u64,
    capacity: u64,
    burst_given: bool,
    grain: u64,
    refill: u64,
}

impl Quota {
    /// Makes a token bucket of `units` per period: it holds `units` and refills continuously.
    ///
    /// The period is from 1 ms to 366 days, without a fraction of a microsecond.
    ///
    /// # Panics
    /// When the numbers are invalid; see [`Quota::try_new`].
    #[must_use]
    #[track_caller]
    pub const fn new(units: u64, period: Duration) -> Self {
        sound(Self::try_new(units, period))
    }

    /// Makes a token bucket of `units` per second.
    ///
    /// # Panics
    /// When `units` is 0 or more than 10 million.
    #[must_use]
    #[track_caller]
    pub const fn per_second(units: u64) -> Self {
        Self::new(units, Duration::from_secs(1))
    }

    /// Makes a token bucket of `units` per minute.
    ///
    /// # Panics
    /// When `units` is 0 or more than 10 million per second.
    #[must_use]
    #[track_caller]
    pub const fn per_minute(units: u64) -> Self {
        Self::new(units, Duration::from_secs(60))
    }

    /// Makes a token bucket of `units` per hour.
    ///
    /// # Panics
    /// When `units` is 0 or more than 10 million per second.
    #[must_use]
    #[track_caller]
    pub const fn per_hour(units: u64) -> Self {
        Self::new(units, Duration::from_secs(3_600))
    }

    /// Makes a token bucket of `units` per day of 24 hours.
    ///
    /// # Panics
    /// When `units` is 0 or more than 10 million per second.
    #[must_use]
    #[track_caller]
    pub const fn per_day(units: u64) -> Self {
        Self::new(units, Duration::from_micros(DAY))
    }

    /// Makes a token bucket of `units` per week of 7 days.
    ///
    /// # Panics
    /// When `units` is 0 or more than 10 million per second.
    #[must_use]
    #[track_caller]
    pub const fn per_week(units: u64) -> Self {
        Self::new(units, Duration::from_micros(WEEK))
    }

    /// Makes a token bucket of `units` per month of 30 days.
    ///
    /// Use `calendar` after it, with the feature of that name, for the months of the calendar.
    ///
    /// # Panics
    /// When `units` is 0 or more than 10 million per second.
    #[must_use]
    #[track_caller]
    pub const fn per_month(units: u64) -> Self {
        Self::new(units, Duration::from_micros(MONTH))
    }

    /// Makes a token bucket of `units` per year of 365 days.
    ///
    /// Use `calendar` after it, with the feature of that name, for the years of the calendar.
    ///
    /// # Panics
    /// When `units` is 0 or more than 10 million per second.
    #[must_use]
    #[track_caller]
    pub const fn per_year(units: u64) -> Self {
        Self::new(units, Duration::from_micros(COMMON_YEAR))
    }

    /// Does what [`Quota::new`] does, for numbers from a configuration.
    ///
    /// # Errors
    /// [`ConfigError`] when `units` is 0, the period is out of range, the rate is above 10 million per second, or the
    /// two cannot be counted to within 1 part per million.
    pub const fn try_new(units: u64, period: Duration) -> Result<Self, ConfigError> {
        Self::counted_by(Algorithm::TokenBucket, units, period)
    }

    const fn counted_by(
        algorithm: Algorithm,
        units: u64,
        period: Duration,
    ) -> Result<Self, ConfigError> {
        let period_micros = micros(period);
        if !period.subsec_nanos().is_multiple_of(1_000)
            || period_micros < MILLISECOND
            || period_micros > YEAR
        {
            return Err(ConfigError::Period(period));
        }
        if units == 0 {
            return Err(ConfigError::ZeroUnits);
        }
        if units > period_micros.saturating_mul(UNITS_PER_MICRO) {
            return Err(ConfigError::TooFast { units, period });
        }
        Self {
            algorithm,
            anchor: Some(0),
            calendar: None,
            units,
            period: period_micros,
            capacity: units,
            burst_given: false,
            grain: 0,
            refill: 0,
        }
        .in_integers()
    }

    /// Sets the capacity of a bucket: what may pass at once after a pause.
    ///
    /// The capacity of a leaky bucket is the length of its queue; [`Quota::queue`] sets it by that name.
    ///
    /// # Panics
    /// When `burst` is 0, fills up within a microsecond, cannot be counted exactly enough, or the algorithm is a
    /// window.
    #[must_use]
    #[track_caller]
    pub const fn burst(self, burst: u64) -> Self {
        sound(self.try_burst(burst))
    }

    /// Does what [`Quota::burst`] does, for a number from a configuration.
    ///
    /// # Errors
    /// [`ConfigError`] when `burst` is 0, fills up within a microsecond, cannot be counted exactly enough, or the
    /// algorithm is a window.
    pub const fn try_burst(mut self, burst: u64) -> Result<Self, ConfigError> {
        if burst == 0 {
            return Err(ConfigError::ZeroBurst);
        }
        self.capacity = burst;
        self.burst_given = true;
        self.in_integers()
    }

    /// Counts by this algorithm.
    ///
    /// # Errors
    /// [`ConfigError`] when a burst was given and the algorithm is a window, when a log would be too long, or when the
    /// numbers cannot be counted to within 1 part per million.
    pub const fn try_algorithm(mut self, algorithm: Algorithm) -> Result<Self, ConfigError> {
        self.algorithm = algorithm;
        if !self.burst_given {
            self.capacity = self.units;
        }
        self.anchor = Some(0);
        if !matches!(algorithm, Algorithm::FixedWindow) {
            self.calendar = None;
        }
        self.in_integers()
    }

    /// Counts by [`Algorithm::TokenBucket`], which is the default.
    ///
    /// # Panics
    /// When a bucket cannot count these numbers exactly enough; see [`Quota::try_algorithm`].
    #[must_use]
    #[track_caller]
    pub const fn token_bucket(self) -> Self {
        sound(self.try_algorithm(Algorithm::TokenBucket))
    }

    /// Counts by [`Algorithm::Gcra`].
    ///
    /// # Panics
    /// When a bucket cannot count these numbers exactly enough; see [`Quota::try_algorithm`].
    #[must_use]
    #[track_caller]
    pub const fn gcra(self) -> Self {
        sound(self.try_algorithm(Algorithm::Gcra))
    }

    /// Counts by [`Algorithm::LeakyBucket`]: requests wait their turn.
    ///
    /// # Panics
    /// When a bucket cannot count these numbers exactly enough; see [`Quota::try_algorithm`].
    #[must_use]
    #[track_caller]
    pub const fn leaky_bucket(self) -> Self {
        sound(self.try_algorithm(Algorithm::LeakyBucket))
    }

    /// Counts by [`Algorithm::FixedWindow`].
    ///
    /// # Panics
    /// When a burst was given.
    #[must_use]
    #[track_caller]
    pub const fn fixed_window(self) -> Self {
        sound(self.try_algorithm(Algorithm::FixedWindow))
    }

    /// Counts by [`Algorithm::SlidingWindow`], the two-window counter.
    ///
    /// # Panics
    /// When a burst was given, or the numbers cannot be counted exactly enough.
    #[must_use]
    #[track_caller]
    pub const fn sliding_window(self) -> Self {
        sound(self.try_algorithm(Algorithm::SlidingWindow))
    }

    /// Counts by [`Algorithm::SlidingLog`].
    ///
    /// # Panics
    /// When a burst was given, or the quota is above 10,000 units.
    #[must_use]
    #[track_caller]
    pub const fn sliding_log(self) -> Self {
        sound(self.try_algorithm(Algorithm::SlidingLog))
    }

    /// Shifts a fixed window from its alignment to the Unix epoch: `per_day(100).fixed_window().offset(6 h)` starts
    /// each day at 06:00 UTC.
    ///
    /// # Panics
    /// When this is not a fixed window, or the offset is not shorter than the period.
    #[must_use]
    #[track_caller]
    pub const fn offset(self, offset: Duration) -> Self {
        sound(self.try_offset(offset))
    }

    /// Does what [`Quota::offset`] does, for a span from a configuration.
    ///
    /// # Errors
    /// [`ConfigError`] when this is not a fixed window, or the offset is not shorter than the period.
    pub const fn try_offset(self, offset: Duration) -> Result<Self, ConfigError> {
        if offset.as_nanos() >= self.period().as_nanos()
            || !offset.subsec_nanos().is_multiple_of(1_000)
        {
            return Err(ConfigError::Offset {
                offset,
                period: self.period(),
            });
        }
        self.with_anchor(Some(micros(offset)))
    }

    /// Starts a fixed window at its first request, instead of at a multiple of the period.
    ///
    /// # Panics
    /// When this is not a fixed window.
    #[must_use]
    #[track_caller]
    pub const fn from_first_request(self) -> Self {
        sound(self.with_anchor(None))
    }

    /// Returns the algorithm.
    #[must_use]
    pub const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Returns the units per period.
    #[must_use]
    pub const fn units(&self) -> u64 {
        self.units
    }

    /// Returns the period, or the length of the window.
    #[must_use]
    pub const fn period(&self) -> Duration {
        Duration::from_micros(self.period)
    }

    /// Returns the most that can pass at once: a bucket's burst, a window's units. No request may cost more.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Returns how long an empty bucket takes to fill, or a window to pass, rounded up to a microsecond.
    ///
    /// It is the span over which [`capacity`](Self::capacity) units are the quota.
    #[must_use]
    pub const fn window(&self) -> Duration {
        match self.algorithm.is_bucket() {
            true => Duration::from_micros((self.capacity * self.grain).div_ceil(self.refill)),
            false => self.period(),
        }
    }

    /// Returns the offset of a fixed window in microseconds, or `None` if it starts with its first request.
    #[must_use]
    pub const fn window_offset(&self) -> Option<u64> {
        self.anchor
    }

    /// Returns the grains in one unit of a bucket; of a sliding window, the microseconds in one step.
    ///
    /// A grain is the smallest amount that a bucket counts. Each microsecond gives back [`refill`](Self::refill) of
    /// them. A step is the resolution of a sliding window's weight.
    #[must_use]
    pub const fn grain(&self) -> u64 {
        self.grain
    }

    /// Returns the grains that come back to a bucket in each microsecond; 0 for a window.
    #[must_use]
    pub const fn refill(&self) -> u64 {
        self.refill
    }

    /// Returns the quota that the stored form decodes to: only the numbers that a state needs.
    pub(crate) const fn reduced(&self) -> Self {
        let is_bucket = self.algorithm.is_bucket();
        Self {
            algorithm: if is_bucket {
                Algorithm::TokenBucket
            } else {
                self.algorithm
            },
            // Grains per microsecond are units per grain of microseconds.
            units: if is_bucket {
                self.refill
            } else {
                self.capacity
            },
            period: if is_bucket { self.grain } else { self.period },
            burst_given: is_bucket,
            ..*self
        }
    }

    /// Returns whether both have the same state: the same [reduced](Self::reduced) numbers.
    pub(crate) fn counts_like(&self, other: &Self) -> bool {
        let is_same = self.capacity == other.capacity
            && self.grain == other.grain
            && self.refill == other.refill;
        // Only buckets have a refill.
        is_same && (self.refill > 0 || self.has_windows_of(other))
    }

    /// Returns the quota of stored numbers, if they are valid: its products stay below 2^53.
    pub(crate) fn from_stored(
        algorithm: Algorithm,
        capacity: u64,
        grain: u64,
        pace: u64,
        anchor: Option<u64>,
    ) -> Option<Self> {
        let is_sound = match algorithm {
            Algorithm::TokenBucket | Algorithm::Gcra | Algorithm::LeakyBucket => {
                (pace..=MOST_GRAINS).contains(&capacity.checked_mul(grain)?)
            }
            Algorithm::FixedWindow => {
                grain == 1
                    && capacity <= YEAR * UNITS_PER_MICRO
                    && anchor.is_none_or(|offset| offset < pace)
            }
            Algorithm::SlidingWindow => {
                grain <= pace && capacity.checked_mul(pace / grain.max(1))? <= MOST_GRAINS
            }
            Algorithm::SlidingLog | Algorithm::Concurrent => grain == 1 && capacity <= LONGEST_LOG,
        };
        // A year of the calendar is longer by the hours that its zone moves.
        let is_period = algorithm.is_bucket() || (MILLISECOND..=YEAR + DAY).contains(&pace);
        if capacity == 0 || grain == 0 || pace == 0 || !(is_sound && is_period) {
            return None;
        }
        let (units, period, refill) = if algorithm.is_bucket() {
            (pace, grain, pace)
        } else {
            (capacity, pace, 0)
        };
        Some(Self {
            algorithm,
            anchor,
            calendar: None,
            units,
            period,
            capacity,
            burst_given: algorithm.is_bucket(),
            grain,
            refill,
        })
    }

    /// Returns whether both count the same windows in the same steps, of any number of units: no bucket does.
    ///
    /// Each hold has its own expiry, so holds of any two quotas count the same.
    pub(crate) fn has_windows_of(&self, other: &Self) -> bool {
        !self.algorithm.is_bucket()
            && self.algorithm.state_code() == other.algorithm.state_code()
            && (self.period == other.period || self.algorithm == Algorithm::Concurrent)
            && self.grain == other.grain
            && self.anchor == other.anchor
    }

    pub(crate) const fn period_micros(&self) -> u64 {
        self.period
    }

    const fn with_anchor(mut self, anchor: Option<u64>) -> Result<Self, ConfigError> {
        if !matches!(self.algorithm, Algorithm::FixedWindow) || self.calendar.is_some() {
            return Err(ConfigError::NotAFixedWindow(self.algorithm));
        }
        self.anchor = anchor;
        Ok(self)
    }

    /// Computes the integers that the algorithms count in.
    const fn in_integers(mut self) -> Result<Self, ConfigError> {
        if !self.algorithm.is_bucket() && self.burst_given {
            return Err(ConfigError::BurstOnWindow(self.algorithm));
        }
        let counted = match self.algorithm {
            Algorithm::TokenBucket | Algorithm::Gcra | Algorithm::LeakyBucket => {
                rate::grains(self.units, self.period, self.capacity)
            }
            Algorithm::SlidingWindow => match rate::weight_step(self.units, self.period) {
                Some(step) => Some((step, 0)),
                None => None,
            },
            Algorithm::SlidingLog | Algorithm::Concurrent if self.units > LONGEST_LOG => {
                return Err(ConfigError::LogTooLong { units: self.units });
            }
            Algorithm::SlidingLog | Algorithm::FixedWindow | Algorithm::Concurrent => Some((1, 0)),
        };
        let Some((grain, refill)) = counted else {
            let (units, period, capacity) = (self.units, self.period(), self.capacity);
            return Err(ConfigError::NotRepresentable {
                units,
                period,
                capacity,
            });
        };
        // A full bucket overflows. One that fills up within a microsecond would never reach its rate.
        if self.algorithm.is_bucket() && self.capacity * grain < refill {
            return Err(ConfigError::BurstTooSmall {
                burst: self.capacity,
                least: refill.div_ceil(grain),
            });
        }
        (self.grain, self.refill) = (grain, refill);
        Ok(self)
    }
}

/// Returns a quota that was written in code.
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
    // A constant cannot drop an error that could own memory.
    core::mem::forget(quota);
    sound
}
