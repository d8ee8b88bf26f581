//! The time of a store in this process. Only this folder reads the machine's clocks.

mod anchored;
mod monotonic;

use core::fmt;

pub use self::monotonic::MonotonicClock;
use crate::time::Timestamp;

/// Tells a store in this process the time.
///
/// If a clock runs backwards, the store uses the instant of the last charge until the clock has caught up. Use
/// `tower_quota_testkit::ManualClock` in your tests.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// Returns the present instant.
    fn now(&self) -> Timestamp;
}
