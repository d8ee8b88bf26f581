//! Reads the machine's clocks.

use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::sync::LazyLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::Clock;
use crate::sync::Lock;
use crate::time::{Timestamp, micros};

/// The machine's clock, in microseconds since the Unix epoch. All values share the clock.
///
/// The clock follows the processor's counter through the crate `quanta`. Ten times a second, and when the counter
/// jumps, the clock follows the other clocks of the machine:
///
/// * The monotonic clock corrects a counter that drifts or restarts, by at most a tenth of a second.
/// * A wall clock ahead, for example after a suspension, moves the clock forward.
/// * A wall clock behind slows the clock by a thousandth until both agree.
///
/// Your windows stay aligned to UTC. The clock runs backwards by at most a tenth of a millisecond, unless the counter
/// jumps by less than a tenth of a second.
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
    /// Returns the clock of this process. The first call calibrates the counter for 1 to 200 ms.
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

impl ClockSource for Machine {
    fn counter(&self) -> u64 {
        // Count from 0. Counted from the start of the process, a restarted counter would stand
        // still at 0.
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

pub(super) const COMPARE_EVERY: u64 = 100_000;
/// A clock ahead of the wall clock runs slower by a thousandth.
pub(super) const SLOWER_BY: u64 = 1_000;

pub(super) trait ClockSource: fmt::Debug {
    /// Returns the processor's counter, from any start. The counter is fast to read, but may jump.
    fn counter(&self) -> u64;

    /// Returns the monotonic clock, from any start. The clock stops during a suspension.
    fn monotonic(&self) -> u64;

    fn wall(&self) -> u64;
}

#[derive(Debug)]
pub(super) struct Anchored<S> {
    source: S,
    offset: AtomicU64,
    compared_at: AtomicU64,
    last: Lock<Comparison>,
}

#[derive(Debug)]
struct Comparison {
    monotonic: u64,
    time: u64,
}

impl<S: ClockSource> Anchored<S> {
    pub(super) fn new(source: S) -> Self {
        let last = Comparison {
            monotonic: source.monotonic(),
            time: source.wall(),
        };
        let counter = source.counter();
        Self {
            offset: AtomicU64::new(last.time.wrapping_sub(counter)),
            compared_at: AtomicU64::new(counter),
            last: Lock::new(last),
            source,
        }
    }

    pub(super) fn now(&self) -> u64 {
        self.by_counter().unwrap_or_else(|| self.compare())
    }

    fn by_counter(&self) -> Option<u64> {
        let counter = self.source.counter();
        // A counter that has gone back wraps around to a long time.
        let passed = counter.wrapping_sub(self.compared_at.load(Ordering::Acquire));
        (passed < COMPARE_EVERY).then(|| counter.wrapping_add(self.offset.load(Ordering::Relaxed)))
    }

    #[cold]
    fn compare(&self) -> u64 {
        let mut last = self.last.lock();
        // Another thread may have compared meanwhile.
        if let Some(now) = self.by_counter() {
            return now;
        }
        // Read the counter last, so that a preempted thread makes the clock late and never early.
        let wall = self.source.wall();
        let monotonic = self.source.monotonic();
        let counter = self.source.counter();
        let passed = monotonic.saturating_sub(last.monotonic);
        let slowest = last.time + passed - passed / SLOWER_BY;
        let time = slowest.max(wall);
        *last = Comparison { monotonic, time };
        self.offset
            .store(time.wrapping_sub(counter), Ordering::Relaxed);
        self.compared_at.store(counter, Ordering::Release);
        time
    }
}
