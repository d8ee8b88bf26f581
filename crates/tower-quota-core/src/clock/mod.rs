//! The time of a store in this process. Only this folder reads the machine's clocks.

mod monotonic;
#[cfg(test)]
mod tests;

use core::fmt;

pub use self::monotonic::MonotonicClock;
use crate::time::Timestamp;

/// A clock for a store in this process. Use `tower_quota_testkit::ManualClock` in your tests.
///
/// If your clock runs back by up to a minute, the store waits at the instant of the last charge. After a longer step back, the
/// store forgets the client.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// Returns the present instant.
    fn now(&self) -> Timestamp;
}
