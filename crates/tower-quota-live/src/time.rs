use core::fmt;
use core::str::FromStr;
use core::time::Duration;
use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The first millisecond of the year 9999, the last year in RFC 3339.
const LAST_MILLIS: i64 = 253_370_764_800_000;

/// A time in milliseconds by the clock of the machine, as RFC 3339, such as `2026-05-01T12:00:00Z`.
///
/// Counters never depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(i64);

impl Time {
    /// Returns the machine's time.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "operators read it, and other machines compare it"
    )]
    pub fn now() -> Self {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Self::from_unix_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    /// Creates a time from milliseconds since 1970, clamped to the range of RFC 3339.
    #[must_use]
    pub fn from_unix_millis(millis: i64) -> Self {
        Self(millis.clamp(0, LAST_MILLIS))
    }

    /// Returns the milliseconds since 1970.
    #[must_use]
    pub const fn unix_millis(self) -> i64 {
        self.0
    }

    /// Returns the time since an earlier time, or zero.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or_default())
    }

    /// Returns an earlier time, at least 1970.
    #[must_use]
    pub fn before(self, length: Duration) -> Self {
        let length = i64::try_from(length.as_millis()).unwrap_or(i64::MAX);
        Self::from_unix_millis(self.0.saturating_sub(length))
    }

    /// Returns a later time, at most the year 9999.
    #[must_use]
    pub fn after(self, length: Duration) -> Self {
        Self::from_unix_millis(
            self.0
                .saturating_add(i64::try_from(length.as_millis()).unwrap_or(i64::MAX)),
        )
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Timestamp::from_millisecond(self.0) {
            Ok(timestamp) => timestamp.fmt(f),
            Err(_) => write!(f, "{} ms", self.0),
        }
    }
}

/// The error of a text that is not an RFC 3339 time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a time: write it as RFC 3339, such as \"2026-05-01T12:00:00Z\"")]
pub struct TimeError(String);

impl FromStr for Time {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<Self, TimeError> {
        let timestamp: Timestamp = text.parse().map_err(|_| TimeError(text.to_owned()))?;
        Ok(Self::from_unix_millis(timestamp.as_millisecond()))
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_reads_what_it_writes() {
        for millis in [0, 1, 1_777_636_800_123, LAST_MILLIS] {
            let time = Time::from_unix_millis(millis);
            assert_eq!(time.to_string().parse(), Ok(time), "{time}");
        }
        assert_eq!(
            Time::from_unix_millis(1_777_636_800_000).to_string(),
            "2026-05-01T12:00:00Z"
        );
        assert_eq!(
            "2026-05-01T14:00:00+02:00".parse(),
            Ok(Time::from_unix_millis(1_777_636_800_000))
        );
    }

    #[test]
    fn impossible_time_is_an_error() {
        for text in ["", "tomorrow", "2026-13-01T00:00:00Z"] {
            let error = text.parse::<Time>().unwrap_err();
            assert!(error.to_string().contains("RFC 3339"), "{error}");
        }
        assert_eq!(
            Time::from_unix_millis(i64::MAX)
                .after(Duration::MAX)
                .unix_millis(),
            LAST_MILLIS
        );
    }
}
