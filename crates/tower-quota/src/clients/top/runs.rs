use core::time::Duration;
use std::collections::HashMap;

use tower_quota_core::Timestamp;

/// The longest time between two refusals of a client at its limit.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
const MOST: usize = 1_024;

/// Remembers since when clients are at their limits, by refusals that follow each other within a minute.
///
/// A client at the limit of a bucket gets some requests through as the bucket refills. Admissions end no run, and admitted
/// requests pay nothing for the runs: a client that is refused after the end of its wait had an admission meanwhile, on
/// this instance or on another one. A request that costs less than the refused one may pass earlier.
#[derive(Default)]
pub(super) struct Runs(HashMap<u64, Run>);

struct Run {
    since: Timestamp,
    last: Timestamp,
    /// The first refusal after the last admission.
    unadmitted_since: Timestamp,
    /// The end of the last refusal's wait.
    until: Timestamp,
}

impl Runs {
    pub(super) fn refused(&mut self, client: u64, now: Timestamp, wait: Duration) {
        if self.0.len() >= MOST && !self.0.contains_key(&client) {
            self.0.retain(|_, run| run.is_present(now));
            if self.0.len() >= MOST {
                return;
            }
        }
        let run = self.0.entry(client).or_insert(Run {
            since: now,
            last: now,
            unadmitted_since: now,
            until: now,
        });
        if !run.is_present(now) {
            (run.since, run.until) = (now, now);
        }
        if now >= run.until {
            run.unadmitted_since = now;
        }
        run.until = now + wait;
        run.last = run.last.max(now);
    }

    /// Returns since when the client is at its limit, if it still is.
    pub(super) fn since(&self, client: u64, now: Timestamp) -> Option<Timestamp> {
        let run = self.0.get(&client)?;
        run.is_present(now).then_some(run.since)
    }

    /// Returns the longest time since the last admission of a client that is still refused.
    #[cfg(any(test, feature = "metrics"))]
    pub(super) fn longest_unadmitted(&self, now: Timestamp) -> Duration {
        let present = self.0.values().filter(|run| run.is_present(now));
        let times = present.map(|run| now.since(run.unadmitted_since));
        times.max().unwrap_or_default()
    }
}

impl Run {
    fn is_present(&self, now: Timestamp) -> bool {
        now.since(self.last) <= LONGEST_PAUSE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_secs(86_400);

    fn at(seconds: u64) -> Timestamp {
        Timestamp::EPOCH + Duration::from_secs(1_000 + seconds)
    }

    #[test]
    fn run_lasts_while_refusals_follow() {
        let mut runs = Runs::default();
        for second in (0..=360).step_by(60) {
            runs.refused(1, at(second), WAIT);
        }
        assert_eq!(runs.longest_unadmitted(at(360)), Duration::from_secs(360));
        assert_eq!(runs.since(1, at(420)), Some(at(0)));
        assert_eq!(runs.since(1, at(421)), None);
        assert_eq!(runs.longest_unadmitted(at(421)), Duration::ZERO);
        runs.refused(1, at(500), WAIT);
        assert_eq!(runs.since(1, at(500)), Some(at(500)));
    }

    #[test]
    fn refusal_after_wait_follows_an_admission() {
        let mut runs = Runs::default();
        for second in 0..=600 {
            // The client gets a request through every ten seconds.
            let wait = Duration::from_secs(10 - second % 10);
            runs.refused(1, at(second), wait);
        }
        assert_eq!(runs.longest_unadmitted(at(609)), Duration::from_secs(9));
        assert_eq!(runs.since(1, at(609)), Some(at(0)));
    }

    #[test]
    fn full_map_keeps_present_runs() {
        let mut runs = Runs::default();
        for client in 0..2 * MOST as u64 {
            runs.refused(client, at(0), WAIT);
        }
        assert_eq!(runs.0.len(), MOST);
        runs.refused(0, at(61), WAIT);
        runs.refused(9_999, at(61), WAIT);
        assert_eq!(runs.0.len(), 2);
    }
}
