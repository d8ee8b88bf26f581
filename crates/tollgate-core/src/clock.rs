//! Where an in-process store gets its time. The only file in Tollgate that reads the machine's clocks.

use core::fmt;
use core::time::Duration;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::time::{Timestamp, micros};

/// Tells a store that lives in this process what time it is.
///
/// A clock should not run backwards; if it does, stores change nothing until it has caught up with the last charge.
/// Tests pass a clock that they move by hand (`tollgate_testkit::ManualClock`).
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The present instant.
    fn now(&self) -> Timestamp;
}

/// The machine's monotonic clock, aligned to the Unix epoch once, when it is made.
///
/// Later steps of the wall clock (NTP, an operator) do not move it: counters neither jump nor freeze. The price is that
/// epoch-aligned windows drift from the wall clock by whatever the wall clock was stepped since the process began.
///
/// ```
/// use tollgate_core::{Clock, MonotonicClock};
///
/// let clock = MonotonicClock::new();
/// let before = clock.now();
/// assert!(clock.now() >= before);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct MonotonicClock {
    started: Instant,
    epoch_at_start: u64,
}

impl MonotonicClock {
    /// Reads the wall clock once and counts monotonically from there.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the one place where a clock is anchored")]
    pub fn new() -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        Self { started: Instant::now(), epoch_at_start: micros(wall) }
    }
}

impl Default for MonotonicClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for MonotonicClock {
    fn now(&self) -> Timestamp {
        #[expect(clippy::disallowed_methods, reason = "the one place where time is read")]
        let elapsed = Instant::now().duration_since(self.started);
        Timestamp::from_micros(self.epoch_at_start + micros(elapsed))
    }
}
