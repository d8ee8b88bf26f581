//! The calendar of a time zone.

use core::hash::{Hash, Hasher};

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use crate::error::ConfigError;
use crate::quota::{Algorithm, COMMON_YEAR, DAY, MONTH, Quota, WEEK};
use crate::sync::Lock;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::quota) struct Calendar(&'static TimeZone);

/// The zones of the program. A program has few zones, and never frees them, so that quotas are
/// `Copy`.
static ZONES: Lock<Vec<&'static TimeZone>> = Lock::new(Vec::new());

impl Quota {
    /// Counts by the days, weeks (from Monday), months or years of a zone such as `"Europe/Berlin"`.
    ///
    /// The quota becomes a fixed window. The store selects the window by its own time. Header
    /// fields announce the nominal [`window`](Self::window), such as 30 days. The rules come from
    /// the time zone database of your machine, or from a copy in this crate. After the year 9998,
    /// windows have their nominal length.
    ///
    /// ```
    /// use tower_quota_core::{Algorithm, ConfigError, Quota};
    ///
    /// let plan = Quota::per_month(10_000).calendar("Europe/Berlin")?;
    /// assert_eq!(plan.algorithm(), Algorithm::FixedWindow);
    ///
    /// let error = Quota::per_month(10_000).calendar("Berlin").unwrap_err();
    /// assert_eq!(error, ConfigError::UnknownZone("Berlin".into()));
    /// # Ok::<(), ConfigError>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`ConfigError`] if the zone is unknown, if the period is not a day, 7 days, 30 days
    /// or 365 days, or if the quota has a burst, an offset, or an algorithm other than the default
    /// and the fixed window.
    pub fn calendar(mut self, zone: &str) -> Result<Self, ConfigError> {
        if !matches!(self.period, DAY | WEEK | MONTH | COMMON_YEAR) {
            return Err(ConfigError::NotACalendarPeriod(self.period()));
        }
        if self.algorithm == Algorithm::TokenBucket {
            self = self.try_algorithm(Algorithm::FixedWindow)?;
        }
        if self.anchor != Some(0) {
            return Err(ConfigError::NotAFixedWindow(self.algorithm));
        }
        self = self.with_anchor(Some(0))?;
        let known = TimeZone::get(zone).ok();
        // `Etc/Unknown` exists, but has no name to write into a document.
        let Some(known) = known.filter(|zone| zone.iana_name().is_some()) else {
            return Err(ConfigError::UnknownZone(zone.to_owned()));
        };
        self.calendar = Some(Calendar::new(known));
        Ok(self)
    }
}

impl Calendar {
    fn new(zone: TimeZone) -> Self {
        let mut zones = ZONES.lock();
        if let Some(known) = zones.iter().find(|known| ***known == zone) {
            return Self(known);
        }
        let zone = Box::leak(Box::new(zone));
        zones.push(zone);
        Self(zone)
    }

    pub(super) fn name(self) -> Option<&'static str> {
        self.0.iana_name()
    }

    /// Returns the period and the offset of the window at an instant.
    ///
    /// `nominal` is the length of a day, week, month or year. Windows leave no gap and never overlap.
    pub(super) fn window_at(self, nominal: u64, now: u64) -> Option<(u64, u64)> {
        let now = Timestamp::from_microsecond(i64::try_from(now).ok()?).ok()?;
        let mut day = self.0.to_datetime(now).date();
        // When clocks go back over midnight, the date goes back too, although the next day has
        // begun.
        let tomorrow = day.tomorrow().ok()?;
        if self.start_of(tomorrow)? <= now.as_microsecond() {
            day = tomorrow;
        }
        let (first, unit) = match nominal {
            DAY => (day, 1.day()),
            WEEK => {
                let since_monday = day.weekday().to_monday_zero_offset().days();
                (day.checked_sub(since_monday).ok()?, 1.week())
            }
            MONTH => (day.first_of_month(), 1.month()),
            _ => (day.first_of_year(), 1.year()),
        };
        let next = first.checked_add(unit).ok()?;
        let start = self.start_of(first)?;
        let period = self.start_of(next)? - start;
        // The window around the epoch starts before the epoch.
        let offset = start.checked_rem_euclid(period)?;
        Some((u64::try_from(period).ok()?, offset.cast_unsigned()))
    }

    /// Returns the start of a day. If clocks skip midnight, the day starts after the gap.
    fn start_of(self, day: Date) -> Option<i64> {
        let start = day.to_zoned(self.0.clone()).ok()?;
        Some(start.timestamp().as_microsecond())
    }
}

impl Hash for Calendar {
    fn hash<H: Hasher>(&self, _: &mut H) {
        // Leave the zone out, because `TimeZone` is not `Hash`. Two quotas seldom differ only in
        // their zone.
    }
}
