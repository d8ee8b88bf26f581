//! Instants, on the clock of the side that holds the state.

use core::fmt;
use core::time::Duration;

/// An instant in microseconds since the Unix epoch, on the clock of the side that holds the state.
///
/// Windows are aligned to the epoch. Instants of two processes are comparable only as far as their clocks are;
/// tower-quota never compares instants of two clocks.
///
/// ```
/// use std::time::Duration;
/// use tower_quota_core::Timestamp;
///
/// let noon = Timestamp::from_micros(1_763_712_000_000_000);
/// assert_eq!((noon + Duration::from_millis(5)).since(noon), Duration::from_millis(5));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The Unix epoch.
    pub const EPOCH: Self = Self(0);

    /// Makes the instant this many microseconds after the Unix epoch.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Returns the microseconds since the Unix epoch.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Returns the time since `earlier`; zero if it is not earlier.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl core::ops::Add<Duration> for Timestamp {
    type Output = Self;

    /// Adds, saturating; a fraction of a microsecond is dropped.
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(micros(span)))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

/// Returns the microseconds of a duration, rounded down, at most `u64::MAX` (half a million years).
pub(crate) const fn micros(span: Duration) -> u64 {
    let micros = span.as_micros();
    if micros > u64::MAX as u128 {
        u64::MAX
    } else {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "compared with u64::MAX just above"
        )]
        let fitting = micros as u64;
        fitting
    }
}
