//! The latencies of very many checks.

use std::hint::black_box;
use std::time::Duration;

/// A count for each number of nanoseconds up to a quarter of a millisecond; longer ones count as that.
pub(super) struct Latencies {
    counts: Vec<u64>,
}

const MOST: usize = 250_000;

impl Latencies {
    pub(super) fn new() -> Self {
        // Written to, so that all of it is in memory before that is measured; zeros would come when they are needed.
        let mut counts = black_box(vec![1; MOST + 1]);
        counts.fill(0);
        Self { counts }
    }

    pub(super) fn add(&mut self, latency: Duration) {
        let nanoseconds = usize::try_from(latency.as_nanos()).unwrap_or(MOST);
        self.counts[nanoseconds.min(MOST)] += 1;
    }

    /// Returns the microseconds that all but one in `many` took at most.
    pub(super) fn all_but_one_in(&self, many: u64) -> f64 {
        let mut above = self.counts.iter().sum::<u64>() / many;
        for (nanoseconds, &count) in self.counts.iter().enumerate().rev() {
            if count > above {
                return nanoseconds as f64 / 1_000.0;
            }
            above -= count;
        }
        0.0
    }
}
