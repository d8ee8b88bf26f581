//! Penalties: escalating blocks for clients who keep asking while they are refused.

use core::time::Duration;

use crate::error::ConfigError;
use crate::quota::{MOST_GRAINS, Quota};
use crate::time::micros;

/// The longest possible block.
const LONGEST: Duration = Duration::from_secs(366 * 86_400);

/// A penalty for refused requests.
///
/// 1. The first few refusals are free.
/// 2. Each further one blocks the client for a step longer, up to a maximum.
/// 3. Time forgives one refusal each step.
///
/// A penalty is a token bucket of strikes. Each refusal takes one strike, into debt if need be. While the bucket is in
/// debt, the limit refuses.
///
/// ```
/// use std::time::Duration;
/// use tower_quota_core::Penalty;
///
/// // Ten refusals are forgiven, one a minute. The eleventh in a row blocks for a minute, the twelfth for two.
/// const STRICT: Penalty = Penalty::after(10).step(Duration::from_secs(60)).most(Duration::from_secs(3_600));
/// assert_eq!(STRICT.most_debt(), 60);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Penalty {
    strikes: Quota,
    most: Duration,
}

impl Penalty {
    /// Makes a penalty with this many free refusals in a row, at least one.
    ///
    /// Each further refusal blocks for a minute more, up to an hour; [`step`](Self::step) and [`most`](Self::most)
    /// change that.
    ///
    /// # Panics
    /// When this is 0, or so many that they cannot be counted exactly enough; see [`Penalty::try_new`].
    #[track_caller]
    pub const fn after(refusals: u64) -> Self {
        Self {
            strikes: Quota::new(1, Duration::from_secs(60)).burst(refusals),
            most: Duration::from_secs(3_600),
        }
    }

    /// Sets what each further refusal adds to the block, which is also how long it takes to forgive one.
    ///
    /// A step is from 1 ms to 366 days, without a fraction of a microsecond.
    ///
    /// # Panics
    /// When the step is out of range; see [`Penalty::try_new`].
    #[track_caller]
    pub const fn step(self, step: Duration) -> Self {
        Self {
            strikes: Quota::new(1, step).burst(self.strikes.capacity()),
            most: self.most,
        }
    }

    /// Sets the longest block, rounded down to full steps: at least one step, and at most 366 days.
    pub const fn most(self, most: Duration) -> Self {
        Self {
            strikes: self.strikes,
            most,
        }
    }

    /// Makes a penalty from numbers of a configuration: free refusals, step, longest block.
    ///
    /// # Errors
    /// [`ConfigError`] when no refusal is free, when the step is not from 1 ms to 366 days or has a fraction of a
    /// microsecond, or when the numbers cannot be counted to within 1 part per million.
    pub fn try_new(refusals: u64, step: Duration, most: Duration) -> Result<Self, ConfigError> {
        Ok(Self {
            strikes: Quota::try_new(1, step)?.try_burst(refusals)?,
            most,
        })
    }

    /// Returns the bucket of strikes: how many refusals are free, and how fast they are forgiven.
    #[must_use]
    pub const fn strikes(&self) -> &Quota {
        &self.strikes
    }

    /// Returns the most strikes that count against a client beyond the free ones.
    #[must_use]
    pub const fn most_debt(&self) -> u64 {
        let most = if self.most.as_nanos() > LONGEST.as_nanos() {
            LONGEST
        } else {
            self.most
        };
        let steps = micros(most) / self.strikes.period_micros();
        let countable = MOST_GRAINS / self.strikes.grain();
        let steps = if steps > countable { countable } else { steps };
        if steps == 0 { 1 } else { steps }
    }
}
