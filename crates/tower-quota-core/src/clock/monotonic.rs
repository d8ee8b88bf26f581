//! The machine's clock.

use core::time::Duration;
use std::sync::LazyLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::Clock;
use super::anchored::{Anchored, Source};
use crate::time::{Timestamp, micros};

/// The machine's clock, in microseconds since the Unix epoch. The clock does not run backwards.
///
/// The clock reads the processor's counter through the crate `quanta`, or the system's monotonic clock on processors without a
/// reliable counter. The clock is anchored again ten times a second, and at once if the counter jumps:
///
/// * The system's monotonic clock measures the time since the last anchor. A counter that drifts or restarts after a resume or a
///   migration moves the clock by a tenth of a second at most.
/// * If the wall clock is ahead, for example after a suspension, the clock moves forward.
/// * If the wall clock is behind because you set it back, the clock runs slower by a thousandth until both agree.
///
/// Windows in UTC therefore stay aligned as long as your process runs. Two readings run backwards by a tenth of a millisecond at
/// most, unless the counter jumps by less than a tenth of a second.
///
/// All values share one clock. The first value calibrates the counter for about a millisecond, and for 200 ms at most.
///
/// ```
/// use std::time::Duration;
/// use tower_quota_core::{Clock, MonotonicClock};
///
/// let clock = MonotonicClock::new();
/// let before = clock.now();
/// assert!(clock.now() + Duration::from_millis(1) > before);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct MonotonicClock {
    machine: &'static Anchored<Machine>,
}

impl MonotonicClock {
    /// Returns the clock of this process. The first call calibrates the clock.
    #[must_use]
    pub fn new() -> Self {
        static MACHINE: LazyLock<Anchored<Machine>> =
            LazyLock::new(|| Anchored::new(Machine::start()));
        Self { machine: &MACHINE }
    }
}

impl Default for MonotonicClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for MonotonicClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.machine.now())
    }
}

#[derive(Debug)]
struct Machine {
    counter: quanta::Clock,
    started: Instant,
}

impl Machine {
    #[expect(
        clippy::disallowed_methods,
        reason = "the only place that reads the system's clock"
    )]
    fn start() -> Self {
        Self {
            counter: quanta::Clock::new(),
            started: Instant::now(),
        }
    }
}

impl Source for Machine {
    fn counter(&self) -> u64 {
        // From 0 and not from the start of the process, so that a counter that restarts does not stand still.
        self.counter.delta_as_nanos(0, self.counter.raw()) / 1_000
    }

    fn monotonic(&self) -> u64 {
        micros(self.started.elapsed())
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the only place that reads the wall clock"
    )]
    fn wall(&self) -> u64 {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
        micros(since_epoch.unwrap_or(Duration::ZERO))
    }
}
