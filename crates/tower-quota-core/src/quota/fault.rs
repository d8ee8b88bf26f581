//! The causes of an invalid quota, as values that constants can hold.

use core::time::Duration;

use super::algorithm::Algorithm;
use crate::error::ConfigError;

/// The causes of [`ConfigError`] that concern one quota. `Copy`, because a constant cannot drop a value.
#[derive(Clone, Copy)]
pub(super) enum Fault {
    ZeroUnits,
    Period(Duration),
    TooFast { units: u64, period: Duration },
    ZeroBurst,
    BurstOnWindow(Algorithm),
    NotAFixedWindow(Algorithm),
    NotALeakyBucket(Algorithm),
    Offset { offset: Duration, period: Duration },
    BurstTooSmall { burst: u64, least: u64 },
    NotRepresentable { units: u64, period: Duration, capacity: u64 },
    LogTooLong { units: u64 },
    ZeroInstances,
    ShareTooSmall { units: u64, period: Duration, instances: u32 },
}

impl Fault {
    /// Returns the message of a panic: a constant cannot format numbers, but the compiler points at them.
    pub(super) const fn reason(self) -> &'static str {
        match self {
            Self::ZeroUnits => "a quota of 0 admits nothing: give at least 1 unit per period",
            Self::Period(_) => "a period must be from 1 ms to 366 days, without a fraction of a microsecond",
            Self::TooFast { .. } => "a quota may not exceed 10 million units per second",
            Self::ZeroBurst => "a burst or a queue of 0 admits nothing: give at least 1, or leave it out",
            Self::BurstOnWindow(_) => "a window has no burst: its limit is the units per window",
            Self::NotAFixedWindow(_) => "only a fixed window takes an offset or an anchor",
            Self::NotALeakyBucket(_) => "only a leaky bucket has a queue: call leaky_bucket() first, or give a burst",
            Self::Offset { .. } => "an offset must be shorter than its window, without a fraction of a microsecond",
            Self::BurstTooSmall { .. } => "this burst fills up within a microsecond at this rate: give a larger one",
            Self::NotRepresentable { .. } => {
                "this rate with this capacity cannot be counted to within 1 part per million: give a smaller burst"
            }
            Self::LogTooLong { .. } => "a sliding log keeps at most 10000 stamps: use a sliding window counter",
            Self::ZeroInstances => "a quota cannot be divided among 0 instances: give at least 1",
            Self::ShareTooSmall { .. } => "less than one unit per 366 days for each instance: give more units",
        }
    }

    pub(super) const fn raise(self) -> ConfigError {
        match self {
            Self::ZeroUnits => ConfigError::ZeroUnits,
            Self::Period(period) => ConfigError::Period(period),
            Self::TooFast { units, period } => ConfigError::TooFast { units, period },
            Self::ZeroBurst => ConfigError::ZeroBurst,
            Self::BurstOnWindow(algorithm) => ConfigError::BurstOnWindow(algorithm),
            Self::NotAFixedWindow(algorithm) => ConfigError::NotAFixedWindow(algorithm),
            Self::NotALeakyBucket(algorithm) => ConfigError::NotALeakyBucket(algorithm),
            Self::Offset { offset, period } => ConfigError::Offset { offset, period },
            Self::BurstTooSmall { burst, least } => ConfigError::BurstTooSmall { burst, least },
            Self::NotRepresentable { units, period, capacity } => {
                ConfigError::NotRepresentable { units, period, capacity }
            }
            Self::LogTooLong { units } => ConfigError::LogTooLong { units },
            Self::ZeroInstances => ConfigError::ZeroInstances,
            Self::ShareTooSmall { units, period, instances } => ConfigError::ShareTooSmall { units, period, instances },
        }
    }
}
