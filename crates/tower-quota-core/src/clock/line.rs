//! The time as a straight line over the counter, for a window of the counter's steps.

use crate::sync::SequenceLock;

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
        u64::try_from(micros.checked_div(u128::from(steps))?)
            .ok()
            .map(Self)
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
        let steps = (u128::from(micros) << 64)
            .checked_div(u128::from(self.0))
            .unwrap_or(u128::MAX);
        u64::try_from(steps).unwrap_or(u64::MAX)
    }
}

/// The published line, readable by all threads without a lock: the counter at its start, the time there, the rate.
///
/// It is closed while there is no line. One thread writes at a time.
pub(super) type Line = SequenceLock<3>;

impl Line {
    /// Returns the time by the counter. There is none outside of the window, or while the line is closed.
    #[inline]
    pub(super) fn micros(&self, counter: impl FnOnce() -> u64) -> Option<u64> {
        let (start_micros, passed) = self.read(|words| {
            let [start, start_micros, rate] = words.all();
            // A counter that went back below the start wraps to more steps than any window has.
            (
                start_micros,
                Rate(rate).micros(counter().wrapping_sub(start)),
            )
        })?;
        (passed < WINDOW_MICROS).then(|| start_micros.wrapping_add(passed))
    }

    /// Publishes the line through this comparison.
    pub(super) fn publish(&self, counter: u64, micros: u64, rate: Rate) {
        let start = counter.wrapping_sub(rate.steps(EARLY_MICROS));
        self.replace([start, micros.wrapping_sub(EARLY_MICROS), rate.0]);
    }
}
