//! Counts of latencies that can be sent between processes and added up.
//!
//! Each power of two of nanoseconds has 32 counts, so a percentile is off by 3 % at most. This is the layout of an HDR
//! histogram (Tene, 2014).

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Counts for each power of two.
const STEPS: u64 = 32;
const STEP_BITS: u32 = STEPS.trailing_zeros();
/// Enough for every number of nanoseconds in 64 bits.
const COUNTS: usize = (STEPS as usize) * (65 - STEP_BITS as usize);

/// The latencies of many decisions.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Latencies {
    counts: Vec<u32>,
}

impl Latencies {
    /// The percentiles that tables have, with the share of decisions below each.
    pub(super) const PERCENTILES: [(&'static str, f64); 3] =
        [("p50 us", 0.5), ("p99 us", 0.99), ("p99.9 us", 0.999)];

    pub(super) fn new() -> Self {
        Self {
            counts: vec![0; COUNTS],
        }
    }

    pub(super) fn add(&mut self, latency: Duration) {
        self.counts[place(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX))] += 1;
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
    }

    /// Returns the percentiles in microseconds.
    pub(super) fn percentiles(&self) -> [(&'static str, f64); 3] {
        Self::PERCENTILES.map(|(name, share)| (name, self.micros_at(share)))
    }

    /// Returns the microseconds that this share of the decisions took at most, or 0 without decisions.
    pub(super) fn micros_at(&self, share: f64) -> f64 {
        let all: u64 = self.counts.iter().map(|&count| u64::from(count)).sum();
        let wanted = (all as f64 * share).ceil() as u64;
        let mut seen = 0;
        let found = self.counts.iter().position(|&count| {
            seen += u64::from(count);
            count > 0 && seen >= wanted
        });
        found.map_or(0.0, |place| largest_of(place as u64) as f64 / 1_000.0)
    }
}

/// Returns the position of the count for these nanoseconds.
fn place(nanos: u64) -> usize {
    let shift = nanos.checked_ilog2().unwrap_or(0).saturating_sub(STEP_BITS);
    (u64::from(shift) * STEPS + (nanos >> shift)) as usize
}

/// Returns the most nanoseconds that are counted at a position.
const fn largest_of(place: u64) -> u64 {
    let shift = (place / STEPS).saturating_sub(1);
    ((place - shift * STEPS) << shift) | ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Latencies, largest_of, place};

    #[test]
    fn places_stay_within_three_percent() {
        for nanos in (0..100_000).chain((17..63).map(|power| 1 << power)) {
            let most = largest_of(place(nanos) as u64);
            assert!(most >= nanos, "{nanos} is counted with {most}");
            assert!(
                (most - nanos) * 32 <= nanos,
                "{nanos} is counted with {most}"
            );
            assert!(
                place(nanos + 1) - place(nanos) <= 1,
                "{nanos} skips a place"
            );
        }
        assert_eq!(place(u64::MAX), super::COUNTS - 1);
    }

    #[test]
    fn merged_latencies_give_common_percentiles() {
        let (mut some, mut others) = (Latencies::new(), Latencies::new());
        (0..99).for_each(|_| some.add(Duration::from_micros(10)));
        others.add(Duration::from_millis(1));
        some.merge(&others);
        assert!((10.0..10.4).contains(&some.micros_at(0.5)));
        assert!((10.0..10.4).contains(&some.micros_at(0.99)));
        assert!((1_000.0..1_040.0).contains(&some.micros_at(0.999)));
    }
}
