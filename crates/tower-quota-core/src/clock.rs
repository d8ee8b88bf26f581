//! Where an in-process store gets its time. The only file in tower-quota that reads the machine's clocks.

use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::sync::LazyLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::time::{Timestamp, micros};

/// Tells a store that lives in this process what time it is.
///
/// A clock should not run backwards; if it does, stores change nothing until it has caught up with the last charge.
/// Tests pass a clock that they move by hand (`tower_quota_testkit::ManualClock`).
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The present instant.
    fn now(&self) -> Timestamp;
}

/// The machine's monotonic clock, aligned to the Unix epoch once, when it is made.
///
/// Later steps of the wall clock (NTP, an operator) do not move it: counters neither jump nor freeze. The price is that
/// epoch-aligned windows drift from the wall clock by whatever the wall clock was stepped since the process began.
///
/// It reads the processor's counter where that runs evenly, and compares it with the system's monotonic clock once a
/// second. What it was found to be ahead or behind, microseconds, it makes good in one step.
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
    machine: &'static Machine,
    /// What the wall clock said when the process's clock began.
    epoch: u64,
}

impl MonotonicClock {
    /// Reads the wall clock once and counts monotonically from there.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the one place where a clock is anchored")]
    pub fn new() -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let machine = &*MACHINE;
        Self { machine, epoch: micros(wall).saturating_sub(machine.elapsed()) }
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
        Timestamp::from_micros(self.epoch + self.machine.elapsed())
    }
}

/// The process's counter, begun by the first clock.
static MACHINE: LazyLock<Machine> = LazyLock::new(Machine::start);

/// How often, in microseconds, the counter is compared with the system's clock.
const COMPARED: u64 = 1_000_000;

#[derive(Debug)]
struct Machine {
    counter: quanta::Clock,
    counter_at_start: u64,
    /// Microseconds for each step of the counter, in 2^64ths.
    rate: u64,
    started: Instant,
    /// Microseconds by the counter, when it is compared next.
    compare_at: AtomicU64,
    /// What is added to the counter's microseconds, wrapping.
    correction: AtomicU64,
}

impl Machine {
    #[expect(clippy::disallowed_methods, reason = "the one place where time is read")]
    fn start() -> Self {
        let counter = quanta::Clock::new();
        Self {
            counter_at_start: counter.raw(),
            rate: rate(&counter),
            counter,
            started: Instant::now(),
            compare_at: AtomicU64::new(COMPARED),
            correction: AtomicU64::new(0),
        }
    }

    /// Microseconds since the start.
    #[inline]
    fn elapsed(&self) -> u64 {
        let counted = self.counted();
        if counted >= self.compare_at.load(Ordering::Relaxed) {
            self.compare();
        }
        counted.wrapping_add(self.correction.load(Ordering::Relaxed))
    }

    /// Microseconds by the counter.
    #[inline]
    fn counted(&self) -> u64 {
        let steps = self.counter.raw().saturating_sub(self.counter_at_start);
        ((u128::from(steps) * u128::from(self.rate)) >> 64) as u64
    }

    #[cold]
    #[expect(clippy::disallowed_methods, reason = "the one place where time is read")]
    fn compare(&self) {
        let counted = self.counted();
        let passed = micros(Instant::now().duration_since(self.started));
        self.compare_at.store(counted + COMPARED, Ordering::Relaxed);
        self.correction.store(passed.wrapping_sub(counted), Ordering::Relaxed);
    }
}

/// What a counter's steps are worth: microseconds in 2^64ths.
fn rate(counter: &quanta::Clock) -> u64 {
    /// Steps that are many enough to be exact, and few enough not to be a time that cannot be told.
    const MANY: u32 = 40;
    let nanos = u128::from(counter.delta_as_nanos(0, 1 << MANY));
    u64::try_from((nanos << (64 - MANY)) / 1_000).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "asks the processor")]
    fn the_rate_tells_the_microseconds_of_the_counters_nanoseconds() {
        let counter = quanta::Clock::new();
        let rate = u128::from(rate(&counter));
        for bits in [20, 30, 40, 45] {
            let told = (rate << bits) >> 64;
            let counted = u128::from(counter.delta_as_nanos(0, 1 << bits) / 1_000);
            assert!(told.abs_diff(counted) <= 1 + counted / 1_000_000, "2^{bits} steps: {told} for {counted}");
        }
    }
}
