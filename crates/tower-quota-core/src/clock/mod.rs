//! The time of an in-process store. The only folder in tower-quota that reads the machine's clocks.

mod counter;
mod line;
mod machine;
#[cfg(all(test, loom))]
mod models;
mod monotonic;
mod sync;
#[cfg(test)]
mod tests;

use core::fmt;

pub use self::monotonic::MonotonicClock;
use crate::time::Timestamp;

/// Returns the present time to a store that lives in this process.
///
/// A clock should not run backwards. If it does, stores change nothing until it has caught up with the last charge.
/// Tests pass a clock that they move by hand (`tower_quota_testkit::ManualClock`).
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// Returns the present instant.
    fn now(&self) -> Timestamp;
}
