//! The time as a straight line over the counter, for a window of the counter's steps.

use super::sync::{AtomicU64, Ordering, fence};

/// The time for which a line is used, by the counter. The clock's errors are at most this large, and this old.
pub(super) const WINDOW_MICROS: u64 = 100_000;

/// The time by which a line begins before its comparison.
///
/// Processors read their counters out of order. A reading may execute before the line it uses was published.
const EARLY_MICROS: u64 = 1_000;

/// The microseconds of one step of the counter, in 2^64ths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rate(u64);

impl Rate {
    /// Returns the rate of a counter that made these steps in this time. There is none below one step a microsecond.
    pub(super) fn measured(steps: u64, nanos: u64) -> Option<Self> {
        let micros = (u128::from(nanos) << 64) / 1_000;
        u64::try_from(micros.checked_div(u128::from(steps))?).ok().map(Self)
    }

    /// Returns whether two rates differ by less than a thousandth.
    pub(super) const fn agrees_with(self, other: Self) -> bool {
        self.0.abs_diff(other.0) <= self.0 / 1_000
    }

    #[inline]
    const fn micros(self, steps: u64) -> u64 {
        ((steps as u128 * self.0 as u128) >> 64) as u64
    }

    fn steps(self, micros: u64) -> u64 {
        let steps = (u128::from(micros) << 64).checked_div(u128::from(self.0)).unwrap_or(u128::MAX);
        u64::try_from(steps).unwrap_or(u64::MAX)
    }
}

/// The published line, readable by all threads without a lock.
///
/// This is a sequence lock (Hans-J. Boehm, "Can seqlocks get along with programming language memory models?", 2012).
/// The version is odd while there is no line or one is being written. One thread writes at a time.
#[derive(Debug)]
pub(super) struct Line {
    version: AtomicU64,
    /// The counter at the start of the line.
    start: AtomicU64,
    /// The time at the start of the line.
    start_micros: AtomicU64,
    rate: AtomicU64,
}

impl Line {
    pub(super) fn closed() -> Self {
        Self {
            version: AtomicU64::new(1),
            start: AtomicU64::new(0),
            start_micros: AtomicU64::new(0),
            rate: AtomicU64::new(0),
        }
    }

    /// Returns the time by the counter. There is none outside of the window, or while the line is closed.
    #[inline]
    pub(super) fn micros(&self, counter: impl FnOnce() -> u64) -> Option<u64> {
        let version = self.version.load(Ordering::Acquire);
        let start = self.start.load(Ordering::Relaxed);
        let start_micros = self.start_micros.load(Ordering::Relaxed);
        let rate = Rate(self.rate.load(Ordering::Relaxed));
        // A counter that went back below the start wraps to more steps than any window has.
        let passed = rate.micros(counter().wrapping_sub(start));
        fence(Ordering::Acquire);
        let is_consistent = version & 1 == 0 && self.version.load(Ordering::Relaxed) == version;
        (is_consistent && passed < WINDOW_MICROS).then(|| start_micros.wrapping_add(passed))
    }

    #[cfg(test)]
    pub(super) fn begin(&self) -> u64 {
        self.start.load(Ordering::Relaxed)
    }

    pub(super) fn is_open(&self) -> bool {
        self.version.load(Ordering::Relaxed) & 1 == 0
    }

    /// Publishes the line through this comparison.
    pub(super) fn publish(&self, counter: u64, micros: u64, rate: Rate) {
        let odd = self.version.load(Ordering::Relaxed) | 1;
        self.version.store(odd, Ordering::Relaxed);
        fence(Ordering::Release);
        self.start.store(counter.wrapping_sub(rate.steps(EARLY_MICROS)), Ordering::Relaxed);
        self.start_micros.store(micros.wrapping_sub(EARLY_MICROS), Ordering::Relaxed);
        self.rate.store(rate.0, Ordering::Relaxed);
        self.version.store(odd.wrapping_add(1), Ordering::Release);
    }

    /// Withdraws the line.
    pub(super) fn close(&self) {
        self.version.fetch_or(1, Ordering::Relaxed);
    }
}
