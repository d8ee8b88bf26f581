use core::time::Duration;
use std::collections::HashMap;
use std::time::Instant;

/// The longest time between two refusals of a client at its limit.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
const MOST: usize = 1_024;

/// Remembers since when clients are at their limits, by refusals that follow each other within a minute.
///
/// A client at the limit of a bucket gets some requests through as the bucket refills, so admissions end no run.
#[derive(Default)]
pub(super) struct Runs(HashMap<u64, Run>);

struct Run {
    since: Instant,
    last: Instant,
}

impl Runs {
    pub(super) fn refused(&mut self, client: u64, now: Instant) {
        if self.0.len() >= MOST && !self.0.contains_key(&client) {
            self.0.retain(|_, run| run.is_present(now));
            if self.0.len() >= MOST {
                return;
            }
        }
        let run = self.0.entry(client).or_insert(Run {
            since: now,
            last: now,
        });
        if !run.is_present(now) {
            run.since = now;
        }
        run.last = run.last.max(now);
    }

    /// Returns since when the client is at its limit, if it still is.
    pub(super) fn since(&self, client: u64, now: Instant) -> Option<Instant> {
        let run = self.0.get(&client)?;
        run.is_present(now).then_some(run.since)
    }

    /// Returns how long a client has been at its limit, for the longest run.
    #[cfg(any(test, feature = "metrics"))]
    pub(super) fn longest(&self, now: Instant) -> Duration {
        let present = self.0.values().filter(|run| run.is_present(now));
        let lengths = present.map(|run| now.saturating_duration_since(run.since));
        lengths.max().unwrap_or_default()
    }
}

impl Run {
    fn is_present(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.last) <= LONGEST_PAUSE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_lasts_while_refusals_follow() {
        let start = crate::observe::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut runs = Runs::default();
        for second in (0..=360).step_by(60) {
            runs.refused(1, at(second));
        }
        assert_eq!(runs.longest(at(360)), Duration::from_secs(360));
        assert_eq!(runs.since(1, at(420)), Some(start));
        assert_eq!(runs.since(1, at(421)), None);
        assert_eq!(runs.longest(at(421)), Duration::ZERO);
        runs.refused(1, at(500));
        assert_eq!(runs.since(1, at(500)), Some(at(500)));
    }

    #[test]
    fn full_map_keeps_present_runs() {
        let start = crate::observe::now();
        let later = start + Duration::from_secs(61);
        let mut runs = Runs::default();
        for client in 0..2 * MOST as u64 {
            runs.refused(client, start);
        }
        assert_eq!(runs.0.len(), MOST);
        runs.refused(0, later);
        runs.refused(9_999, later);
        assert_eq!(runs.0.len(), 2);
    }
}
