//! Counts durations in buckets. A bucket covers an eighth of a power of two of microseconds, and
//! the last bucket begins at four minutes.

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

const STEPS: usize = 8;

const BUCKETS: usize = 26 * STEPS;

pub(crate) struct Latency([AtomicU64; BUCKETS]);

/// The durations of store calls in this process.
///
/// Call [`store_latency`](crate::RateLimitHandle::store_latency) to get the durations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreLatency(Vec<u64>);

impl Latency {
    pub(crate) const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; BUCKETS])
    }

    pub(crate) fn record(&self, duration: Duration) {
        if let Some(bucket) = self.0.get(bucket(duration)) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn read(&self) -> StoreLatency {
        StoreLatency(
            self.0
                .iter()
                .map(|bucket| bucket.load(Ordering::Relaxed))
                .collect(),
        )
    }
}

impl StoreLatency {
    /// Returns the number of calls.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Returns the calls since an earlier value, or all calls after a new policy.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let counts = self.0.iter().enumerate();
        let differences: Option<_> = counts
            .map(|(at, count)| count.checked_sub(earlier.0.get(at).copied().unwrap_or(0)))
            .collect();
        differences.map_or_else(|| self.clone(), Self)
    }

    /// Returns the duration of this percentile, at most an eighth too high, if there are calls.
    #[must_use]
    pub fn percentile(&self, percent: u8) -> Option<Duration> {
        let calls = self.calls();
        let rank = calls
            .saturating_mul(u64::from(percent.min(100)))
            .div_ceil(100)
            .max(1);
        let mut below = 0;
        let at = self.0.iter().position(|count| {
            below += count;
            below >= rank
        })?;
        Some(upper_bound(at))
    }
}

fn bucket(duration: Duration) -> usize {
    let micros = usize::try_from(duration.as_micros()).unwrap_or(usize::MAX);
    if micros < 2 * STEPS {
        return micros;
    }
    // The highest bit selects the power of two, and the next bits select the step.
    let shift = (micros.ilog2() - STEPS.ilog2()) as usize;
    (shift * STEPS + (micros >> shift)).min(BUCKETS - 1)
}

fn upper_bound(at: usize) -> Duration {
    let shift = (at / STEPS).saturating_sub(1);
    let leading = at - shift * STEPS;
    Duration::from_micros(((leading as u64) + 1) << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentile_exceeds_by_at_most_an_eighth() {
        for micros in (1..5000).chain([10_000, 123_456, 9_999_999]) {
            let latency = Latency::new();
            latency.record(Duration::from_micros(micros));
            let found = u64::try_from(latency.read().percentile(99).unwrap().as_micros()).unwrap();
            assert!(
                found > micros && found - micros <= 1 + micros / 8,
                "{micros} us: {found} us"
            );
        }
    }

    #[test]
    fn percentile_ranks_calls() {
        let latency = Latency::new();
        (0..99).for_each(|_| latency.record(Duration::from_micros(100)));
        latency.record(Duration::from_millis(50));
        let read = latency.read();
        assert!(read.percentile(50).unwrap() < Duration::from_micros(120));
        assert!(read.percentile(99).unwrap() < Duration::from_micros(120));
        assert!(read.percentile(100).unwrap() >= Duration::from_millis(50));
    }

    #[test]
    fn difference_holds_later_calls() {
        let latency = Latency::new();
        latency.record(Duration::from_secs(900));
        let earlier = latency.read();
        latency.record(Duration::from_micros(3));
        let since = latency.read().since(&earlier);
        assert_eq!(
            (since.calls(), since.percentile(99)),
            (1, Some(Duration::from_micros(4)))
        );
        assert_eq!(
            earlier.since(&latency.read()),
            earlier,
            "another policy counts from zero"
        );
        assert_eq!(StoreLatency::default().percentile(99), None);
    }
}
