//! The duration of work, with and without the time in which its thread was not scheduled.

use std::fs;
use std::time::{Duration, Instant};

use crate::timing::now;

/// If more than this passes between two readings of the clock, the scheduler is asked why. Asking takes
/// microseconds.
const NOTABLE: Duration = Duration::from_micros(10);

/// Measures one piece of work after the other.
pub(super) struct Waits {
    /// The end of the last piece.
    done: Instant,
    /// The time this thread had waited then.
    known: Duration,
}

impl Waits {
    pub(super) fn new() -> Self {
        Self {
            done: now(),
            known: waited(),
        }
    }

    /// Returns the duration of the work, and how much of it the thread was running.
    pub(super) fn during(&mut self, work: impl FnOnce()) -> (Duration, Duration) {
        let mut began = now();
        if began - self.done > NOTABLE {
            self.known = waited();
            began = now();
        }
        work();
        self.done = now();
        let took = self.done - began;
        if took <= NOTABLE {
            return (took, took);
        }
        let before = self.known;
        self.known = waited();
        self.done = now();
        (took, took.saturating_sub(self.known - before))
    }
}

/// Returns the time this thread was ready but not running: the second number of `/proc/thread-self/schedstat`.
fn waited() -> Duration {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(
        stat.split_whitespace()
            .nth(1)
            .and_then(|figure| figure.parse().ok())
            .unwrap_or(0),
    )
}
