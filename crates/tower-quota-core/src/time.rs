//! Timestamps on the clock of the store.

use core::fmt;
use core::time::Duration;

/// An instant in microseconds since the Unix epoch, on the clock of the store.
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

/// The bit of a mark. No clock reaches this bit, which stands for 146,000 years after the epoch.
const MARK: u64 = 1 << 62;

impl Timestamp {
    /// The Unix epoch.
    pub const EPOCH: Self = Self(0);

    /// Makes a timestamp from the microseconds since the Unix epoch.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Returns the microseconds since the Unix epoch.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Marks this instant as one of the second of two stores, so that a refund finds the store that was charged.
    #[doc(hidden)]
    pub const fn marked(self) -> Self {
        Self(self.0 | MARK)
    }

    #[doc(hidden)]
    pub const fn is_marked(self) -> bool {
        self.0 & MARK != 0
    }

    /// Returns the instant by the clock of its store.
    #[doc(hidden)]
    pub const fn unmarked(self) -> Self {
        Self(self.0 & !MARK)
    }

    /// Returns the instant of a hold that was taken again by a decision.
    #[doc(hidden)]
    #[must_use]
    pub fn taken_again_at(self, decided_at: Self) -> Self {
        let instant = self.unmarked().min(decided_at.unmarked());
        Self(instant.0 | decided_at.0 & MARK)
    }

    /// Returns the time since `earlier`, or zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl core::ops::Add<Duration> for Timestamp {
    type Output = Self;

    /// Adds the full microseconds of a duration. The sum saturates.
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(micros(span)))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

pub(crate) const fn micros(span: Duration) -> u64 {
    let whole = span.as_secs().saturating_mul(1_000_000);
    whole.saturating_add(span.subsec_micros() as u64)
}
