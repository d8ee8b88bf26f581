//! The counts of the processes of a storm.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// The length of a span whose decisions are counted together, in microseconds.
const SPAN: u64 = 100_000;

/// The counts of a process, or of all of them together.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Tally {
    /// Decisions by the number of the span, since the epoch.
    decided: BTreeMap<u64, u64>,
    /// The instants of the first decision by each number of units.
    first: Vec<BTreeMap<u64, u64>>,
    pub(super) admitted: u64,
    /// Requests that the store did not decide.
    pub(super) failed: u64,
    /// Decisions by two documents.
    pub(super) mixed: u64,
    /// The most units that a decision has shown.
    pub(super) newest: u64,
}

impl Tally {
    /// Counts a decision by limits of these units.
    pub(super) fn decided(&mut self, [one, other]: [u64; 2], is_admitted: bool) {
        let now = now();
        *self.decided.entry(now / SPAN).or_default() += 1;
        self.admitted += u64::from(is_admitted);
        self.mixed += u64::from(one != other);
        if one > self.newest {
            self.newest = one;
            if self.first.is_empty() {
                self.first.push(BTreeMap::new());
            }
            self.first[0].insert(one, now);
        }
    }

    pub(super) fn sum(tallies: Vec<Self>) -> Self {
        let mut sum = Self::default();
        for tally in tallies {
            for (span, decisions) in tally.decided {
                *sum.decided.entry(span).or_default() += decisions;
            }
            sum.first.extend(tally.first);
            sum.admitted += tally.admitted;
            sum.failed += tally.failed;
            sum.mixed += tally.mixed;
            sum.newest = sum.newest.max(tally.newest);
        }
        sum
    }

    /// Returns the decisions in the full spans between two instants.
    pub(super) fn decided_in(&self, from: u64, to: u64) -> u64 {
        self.decided
            .range(from / SPAN..to / SPAN)
            .map(|(_, decisions)| decisions)
            .sum()
    }

    /// Returns the microseconds from each put until a process first decided by its document or a later one.
    ///
    /// A process that skipped a document for the next is counted with the next.
    pub(super) fn delays(&self, put: &[u64]) -> Vec<u64> {
        let first_from =
            |seen: &BTreeMap<u64, u64>, units| seen.range(units..).next().map(|(_, first)| *first);
        let of_process = |seen: &BTreeMap<u64, u64>| -> Vec<u64> {
            let numbered = put.iter().zip(super::UNITS + 1..);
            numbered
                .filter_map(|(put, units)| Some(first_from(seen, units)?.saturating_sub(*put)))
                .collect()
        };
        self.first.iter().flat_map(of_process).collect()
    }
}

/// Returns the microseconds since the epoch: one clock for all processes.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
pub(super) fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_micros() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reload::UNITS;

    #[test]
    fn skipped_document_counts_with_the_next() {
        let seen = BTreeMap::from([(UNITS, 10), (UNITS + 2, 2_500)]);
        let tally = Tally {
            first: vec![seen],
            ..Tally::default()
        };
        assert_eq!(tally.delays(&[1_000, 2_000]), [1_500, 500]);
        assert_eq!(
            tally.delays(&[1_000, 2_000, 3_000]).len(),
            2,
            "the third never came into force"
        );
    }

    #[test]
    fn different_units_are_a_mixture() {
        let mut tally = Tally::default();
        tally.decided([UNITS, UNITS], true);
        tally.decided([UNITS, UNITS + 1], false);
        assert_eq!((tally.admitted, tally.mixed), (1, 1));
    }
}
