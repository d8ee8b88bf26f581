//! The time that a decision takes.

use core::cell::Cell;
use core::time::Duration;
use std::time::Instant;

/// One of so many decisions in memory is timed.
const SAMPLE: u32 = 64;

/// The start of a decision that is timed, or nothing.
#[derive(Clone, Copy, Default)]
pub(crate) struct Stopwatch(Option<Instant>);

impl Stopwatch {
    /// Starts to time a decision.
    #[cold]
    #[expect(
        clippy::disallowed_methods,
        reason = "a duration for operators, on which no count depends"
    )]
    pub(crate) fn start() -> Self {
        Self(Some(Instant::now()))
    }

    /// Starts to time one of 64 decisions of each thread, the first one among them.
    #[inline]
    pub(super) fn sample() -> Self {
        thread_local! {
            static DECISIONS: Cell<u32> = const { Cell::new(0) };
        }
        let is_sampled = DECISIONS.with(|decisions| {
            let number = decisions.get();
            decisions.set(number.wrapping_add(1));
            number.is_multiple_of(SAMPLE)
        });
        if is_sampled {
            Self::start()
        } else {
            Self(None)
        }
    }

    /// Returns whether the decision is timed.
    #[inline]
    pub(super) const fn is_running(self) -> bool {
        self.0.is_some()
    }

    /// Returns the time since the start; zero if the decision is not timed.
    pub(super) fn elapsed(self) -> Duration {
        self.0.map_or(Duration::ZERO, |start| start.elapsed())
    }

    /// Returns the seconds since the start; zero if the decision is not timed.
    pub(super) fn seconds(self) -> f64 {
        self.elapsed().as_secs_f64()
    }
}
