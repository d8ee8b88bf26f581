use core::cmp::Reverse;
use core::time::Duration;
use std::collections::HashMap;

use tower_quota_core::Timestamp;

/// The longest time between two refusals of a client at its limit.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
const MOST: usize = 1_024;
/// The runs that make room in a full map, at most once a second.
const REPLACED: usize = 64;
const SECOND: Duration = Duration::from_secs(1);

/// Remembers since when clients are at their limits, by refusals that follow each other within a minute.
///
/// A client at the limit of a bucket gets some requests through as the bucket refills. Admissions end no run, and admitted
/// requests pay nothing for the runs: a client that is refused after the end of its wait had an admission meanwhile, on
/// this instance or on another one. A request that costs less than the refused one may pass earlier.
#[derive(Default)]
pub(super) struct Runs {
    by_client: HashMap<u64, Run>,
    /// The last search for runs that can make room.
    searched: Option<Timestamp>,
}

struct Run {
    refusals: u64,
    since: Timestamp,
    last: Timestamp,
    /// The first refusal after the last admission.
    unadmitted_since: Timestamp,
    /// The end of the last refusal's wait.
    until: Timestamp,
}

impl Runs {
    pub(super) fn refused(&mut self, client: u64, now: Timestamp, wait: Duration) {
        if self.by_client.len() >= MOST && !self.by_client.contains_key(&client) {
            self.make_room(now);
            if self.by_client.len() >= MOST {
                return;
            }
        }
        let run = self.by_client.entry(client).or_insert(Run {
            refusals: 0,
            since: now,
            last: now,
            unadmitted_since: now,
            until: now,
        });
        if !run.is_present(now) {
            (run.since, run.until, run.refusals) = (now, now, 0);
        }
        if now >= run.until {
            run.unadmitted_since = now;
        }
        run.until = now + wait;
        run.last = run.last.max(now);
        run.refusals += 1;
    }

    /// Removes runs that have ended, or else the least frequent ones. The older half of the runs stays.
    ///
    /// Clients that are rarely refused can thus not keep other clients out, and clients that are refused once cannot push
    /// out the longest runs.
    fn make_room(&mut self, now: Timestamp) {
        // Requests wait for no search, so a flood of new clients must not cause many.
        if self.searched.is_some_and(|last| now.since(last) < SECOND) {
            return;
        }
        self.searched = Some(now);
        self.by_client.retain(|_, run| run.is_present(now));
        if self.by_client.len() < MOST {
            return;
        }
        let mut runs: Vec<(u64, Timestamp, u64)> = Vec::new();
        for (client, run) in &self.by_client {
            runs.push((*client, run.since, run.frequency(now)));
        }
        let (newer, ..) =
            runs.select_nth_unstable_by_key(MOST / 2, |(_, since, _)| Reverse(*since));
        let (rare, ..) = newer.select_nth_unstable_by_key(REPLACED, |(.., frequency)| *frequency);
        for (client, ..) in rare {
            self.by_client.remove(client);
        }
    }

    /// Returns since when the client is at its limit, if it still is.
    pub(super) fn since(&self, client: u64, now: Timestamp) -> Option<Timestamp> {
        let run = self.by_client.get(&client)?;
        run.is_present(now).then_some(run.since)
    }

    /// Returns the longest time since the last admission of a client that is still refused.
    #[cfg(any(test, feature = "metrics"))]
    pub(super) fn longest_unadmitted(&self, now: Timestamp) -> Duration {
        let present = self.by_client.values().filter(|run| run.is_present(now));
        let times = present.map(|run| now.since(run.unadmitted_since));
        times.max().unwrap_or_default()
    }
}

impl Run {
    fn is_present(&self, now: Timestamp) -> bool {
        now.since(self.last) <= LONGEST_PAUSE
    }

    /// Returns the refusals in a million seconds. Ten more seconds keep a single refusal from looking frequent.
    fn frequency(&self, now: Timestamp) -> u64 {
        let seconds = now.since(self.since).as_secs().saturating_add(10);
        self.refusals.saturating_mul(1_000_000) / seconds
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
        assert_eq!(runs.by_client.len(), MOST);
        runs.refused(0, at(61), WAIT);
        runs.refused(9_999, at(61), WAIT);
        assert_eq!(runs.by_client.len(), 2);
    }

    #[test]
    fn full_map_makes_room_for_steady_client() {
        let mut runs = Runs::default();
        let steady = u64::MAX;
        for second in 0..600 {
            // Each of the others is refused once a minute.
            for client in (0..MOST as u64).filter(|client| client % 60 == second % 60) {
                runs.refused(client, at(second), WAIT);
            }
            if second >= 120 {
                runs.refused(steady, at(second), WAIT);
            }
        }
        assert_eq!(runs.since(steady, at(600)), Some(at(120)));
        let longest = runs.longest_unadmitted(at(600));
        assert!(longest > Duration::from_secs(540), "{longest:?}");
    }

    #[test]
    fn full_map_keeps_the_longest_runs() {
        let mut runs = Runs::default();
        for second in 0..600 {
            for client in 0..MOST as u64 / 2 {
                if client % 50 == second % 50 {
                    runs.refused(client, at(second), WAIT);
                }
            }
            if second >= 60 {
                // Other clients are refused once.
                for client in 0..500 {
                    runs.refused(second * 1_000_000 + client, at(second), WAIT);
                }
            }
        }
        for client in 0..MOST as u64 / 2 {
            assert_eq!(runs.since(client, at(600)), Some(at(client % 50)));
        }
    }

    #[test]
    fn full_map_is_searched_once_a_second() {
        let mut runs = Runs::default();
        let millis = |millis| at(0) + Duration::from_millis(millis);
        for client in 0..MOST as u64 {
            runs.refused(client, millis(0), WAIT);
        }
        runs.refused(5_000, millis(59_500), WAIT);
        for client in 6_000..7_000 {
            runs.refused(client, millis(59_500), WAIT);
        }
        runs.refused(8_000, millis(60_400), WAIT);
        assert_eq!(runs.since(8_000, millis(60_400)), None);
        runs.refused(8_000, millis(60_500), WAIT);
        assert_eq!(runs.since(8_000, millis(60_500)), Some(millis(60_500)));
    }
}
