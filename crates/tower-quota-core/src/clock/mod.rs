//! The time of a store in this process. No other folder of tower-quota reads the machine's clocks.

mod anchored;
mod monotonic;

use core::fmt;

pub use self::monotonic::MonotonicClock;
use crate::time::Timestamp;

/// A clock gives a store in this process the present time.
///
/// A clock should not run backwards. If it does, a store uses the instant of the last charge until the clock has caught
/// up. Tests pass a clock that they move by hand (`tower_quota_testkit::ManualClock`).
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// Returns the present instant.
    fn now(&self) -> Timestamp;
}
