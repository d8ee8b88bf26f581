//! The clock of a simulation.

use std::time::Duration;

use tokio::time::Instant;
use tower_quota_core::{Clock, Timestamp};

/// A clock that shows tokio's time, which a paused runtime moves. Clones show the same.
#[derive(Clone, Debug)]
pub struct VirtualClock {
    started: Instant,
    from: Timestamp,
}

impl VirtualClock {
    /// Creates a clock that begins now, at midnight UTC of a day in November 2025.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "the time of the runtime is what it shows"
    )]
    pub fn start() -> Self {
        Self {
            started: Instant::now(),
            from: Timestamp::from_micros(1_763_683_200_000_000),
        }
    }

    /// Returns a clock that is ahead of this one.
    #[must_use]
    pub fn ahead_by(&self, span: Duration) -> Self {
        Self {
            started: self.started,
            from: self.from + span,
        }
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        self.from + self.started.elapsed()
    }
}
