//! Calendar windows, which are days, weeks, months and years in a time zone.

#[cfg(feature = "calendar")]
mod zoned;

#[cfg(feature = "calendar")]
pub(super) use self::zoned::Calendar;
use super::Quota;
use crate::time::Timestamp;

#[cfg(not(feature = "calendar"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Calendar {}

#[cfg(not(feature = "calendar"))]
impl Calendar {
    fn window_at(self, _: u64, _: u64) -> Option<(u64, u64)> {
        match self {}
    }

    fn name(self) -> Option<&'static str> {
        match self {}
    }
}

impl Quota {
    /// Returns the time zone of calendar windows, such as `Europe/Berlin`.
    #[must_use]
    pub fn time_zone(&self) -> Option<&'static str> {
        self.calendar?.name()
    }

    /// Returns the quota at an instant. A calendar quota becomes a fixed window.
    ///
    /// You need this method only in a store that does not call [`decide`](crate::decide()).
    pub fn at(&self, now: Timestamp) -> Self {
        let mut quota = *self;
        if let Some(calendar) = quota.calendar.take()
            && let Some((period, offset)) = calendar.window_at(self.period, now.as_micros())
        {
            quota.period = period;
            quota.anchor = Some(offset);
        }
        quota
    }
}
