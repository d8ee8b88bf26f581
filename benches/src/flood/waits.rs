//! Telling the time that something took from the time in which this thread was not let run.

use std::fs;
use std::time::{Duration, Instant};

use crate::timing::now;

/// Between two readings of the clock less than this has gone by, or the scheduler is asked why. Asking takes
/// microseconds.
const NOTABLE: Duration = Duration::from_micros(10);

/// Measures one piece of work after the other.
pub(super) struct Waits {
    /// When the last piece was done.
    done: Instant,
    /// How long this thread had waited then.
    known: Duration,
}

impl Waits {
    pub(super) fn new() -> Self {
        Self { done: now(), known: waited() }
    }

    /// How long the work took, and how much of that the thread was running.
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

/// How long this thread has been ready to run and was not, ever: the second number of `/proc/thread-self/schedstat`.
fn waited() -> Duration {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(stat.split_whitespace().nth(1).and_then(|figure| figure.parse().ok()).unwrap_or(0))
}
