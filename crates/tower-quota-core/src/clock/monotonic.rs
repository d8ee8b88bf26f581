//! The public clock on the machine's counter.

use core::time::Duration;
use std::sync::LazyLock;
use std::time::{SystemTime, UNIX_EPOCH};

use super::Clock;
use super::counter::Processor;
use super::machine::Machine;
use crate::time::{Timestamp, micros};

/// The machine's monotonic clock, aligned to the Unix epoch once, when it is made.
///
/// Later steps of the wall clock (NTP, an operator) do not move it: counters neither jump nor freeze. In return,
/// epoch-aligned windows differ from the wall clock by its steps since the start of the process.
///
/// # Sources
///
/// 1. At first it reads the system's monotonic clock.
/// 2. When the processor's counter has had a constant rate for a tenth of a second, it reads the counter. No call waits
///    for this.
/// 3. Every tenth of a second it compares the counter with the system's clock.
///
/// The counter is not used if the processor does not promise a constant rate.
///
/// # Running backwards
///
/// Successive readings may run backwards by some microseconds when the counter is compared. The counter itself may
/// jump (resume, restore of a snapshot, migration of a virtual machine). The next reading notices a jump by more than a
/// tenth of a second, in either direction, and returns the system's time. A shorter jump may go unnoticed for a tenth of
/// a second, in which the clock is ahead or behind by its length. Readings therefore never run backwards by more than a
/// tenth of a second.
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
    machine: &'static Machine<Processor>,
    /// The wall clock's time at the start of the machine's clock.
    epoch_micros: u64,
}

impl MonotonicClock {
    /// Reads the wall clock once and counts monotonically from there.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that reads the wall clock"
    )]
    pub fn new() -> Self {
        let wall = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or(Duration::ZERO);
        let machine = &*MACHINE;
        Self {
            machine,
            epoch_micros: micros(wall).saturating_sub(machine.elapsed_micros()),
        }
    }
}

impl Default for MonotonicClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for MonotonicClock {
    #[inline]
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(
            self.epoch_micros
                .saturating_add(self.machine.elapsed_micros()),
        )
    }
}

/// The clock of the process, started by the first [`MonotonicClock`].
static MACHINE: LazyLock<Machine<Processor>> = LazyLock::new(|| Machine::start(Processor::start()));
