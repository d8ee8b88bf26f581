//! The answers to the requests of one instance, or of all.

use std::time::Duration;

use serde::{Deserialize, Serialize};

#[derive(Default, Serialize, Deserialize)]
pub(super) struct Tally {
    pub(super) admitted: u64,
    /// Requests without a decision.
    pub(super) failed: u64,
    /// The microseconds from the planned instant of each request to its answer.
    latencies: Vec<u32>,
}

impl Tally {
    /// Reads the output of an instance. If the instance ended early, all of its requests failed.
    pub(super) fn read(output: &[u8], requests: u64) -> Self {
        serde_json::from_slice(output).unwrap_or_else(|_| Self {
            failed: requests,
            ..Self::default()
        })
    }

    /// Counts an answer, or `None` for a request without a decision.
    pub(super) fn count(&mut self, is_admitted: Option<bool>, latency: Duration) {
        match is_admitted {
            Some(true) => self.admitted += 1,
            Some(false) => {}
            None => self.failed += 1,
        }
        self.latencies
            .push(u32::try_from(latency.as_micros()).unwrap_or(u32::MAX));
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.admitted += other.admitted;
        self.failed += other.failed;
        self.latencies.extend(other.latencies);
    }

    /// Returns the microseconds that this share of the answers took at most, or 0 without answers.
    pub(super) fn micros_at(&mut self, share: f64) -> f64 {
        self.latencies.sort_unstable();
        let position = (self.latencies.len() as f64 * share) as usize;
        self.latencies.get(position).copied().map_or(0.0, f64::from)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Tally;

    #[test]
    fn merged_tallies_give_common_figures() {
        let mut sum = Tally::default();
        for micros in 1..100 {
            sum.count(Some(true), Duration::from_micros(micros));
        }
        let mut other = Tally::default();
        other.count(Some(false), Duration::from_millis(1));
        other.count(None, Duration::from_secs(5_000));
        let output = serde_json::to_vec(&other).unwrap();
        sum.merge(Tally::read(&output, 7));
        assert_eq!((sum.admitted, sum.failed), (99, 1));
        assert!((sum.micros_at(0.5) - 51.0).abs() < 0.1);
        assert!((sum.micros_at(0.985) - 1_000.0).abs() < 0.1);
    }

    #[test]
    fn instance_without_tally_fails_its_requests() {
        let mut sum = Tally::read(b"", 7);
        assert_eq!((sum.admitted, sum.failed), (0, 7));
        assert!(sum.micros_at(0.5).abs() < 0.1);
    }
}
