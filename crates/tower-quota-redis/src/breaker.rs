//! Stops calls to a server that does not answer.
//!
//! A few failures in a row open the breaker. Decisions then fail at once and uncharged, for a pause with jitter. The
//! first decision after the pause is the trial. An answer closes the breaker, and a failure doubles the pause. Failures
//! that overlap count once, so the number of connections does not matter.

use core::num::NonZeroU32;
use core::time::Duration;
use std::time::Instant;

use crate::pause;

/// The default number of failures, which is a quarter of a second of silence.
pub(crate) const DEFAULT_FAILURES: NonZeroU32 = NonZeroU32::new(5).unwrap();

const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause, after which the store notices a recovery.
const LONGEST_PAUSE: Duration = Duration::from_millis(400);

#[derive(Debug)]
pub(crate) struct Breaker {
    allowed_failures: NonZeroU32,
    /// The time after which a trial counts as lost, perhaps with its runtime.
    trial_limit: Duration,
    state: BreakerState,
}

#[derive(Clone, Copy, Debug)]
enum BreakerState {
    Closed {
        failures: u32,
        last_failure: Option<Instant>,
    },
    Open {
        until: Instant,
        trials: u32,
    },
    Trial {
        since: Instant,
        trials: u32,
    },
}

impl Breaker {
    pub(crate) fn new(allowed_failures: NonZeroU32, trial_limit: Duration) -> Self {
        Self {
            allowed_failures,
            trial_limit,
            state: BreakerState::CLOSED,
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        matches!(self.state, BreakerState::Closed { .. })
    }

    pub(crate) fn would_admit(&self, now: Instant) -> bool {
        match self.state {
            BreakerState::Closed { .. } => true,
            BreakerState::Open { until, .. } => now >= until,
            BreakerState::Trial { since, .. } => {
                now.saturating_duration_since(since) >= self.trial_limit
            }
        }
    }

    /// Returns whether to send a new decision. After a pause, the decision becomes the trial.
    #[must_use]
    pub(crate) fn admit(&mut self, now: Instant) -> bool {
        let is_admitted = self.would_admit(now);
        if is_admitted
            && let BreakerState::Open { trials, .. } | BreakerState::Trial { trials, .. } =
                self.state
        {
            self.state = BreakerState::Trial { since: now, trials };
        }
        is_admitted
    }

    /// Records an answer. Returns whether it closes the breaker.
    pub(crate) fn answered(&mut self, began: Instant) -> bool {
        match self.state {
            BreakerState::Closed { .. } => {
                self.state = BreakerState::CLOSED;
                false
            }
            BreakerState::Trial { since, .. } if began >= since => {
                self.state = BreakerState::CLOSED;
                true
            }
            // Ignore the answer to an earlier call, which says little about the server now.
            BreakerState::Open { .. } | BreakerState::Trial { .. } => false,
        }
    }

    /// Records a failed call. Returns whether it opens the breaker.
    pub(crate) fn failed(&mut self, began: Instant, ended: Instant) -> bool {
        match &mut self.state {
            BreakerState::Closed {
                failures,
                last_failure,
            } => {
                // Calls that overlap fail together, so count one failure for all of them.
                if last_failure.is_some_and(|last| began < last) {
                    return false;
                }
                *failures += 1;
                *last_failure = Some(ended);
                if *failures < self.allowed_failures.get() {
                    return false;
                }
                self.open(ended, 0);
                true
            }
            BreakerState::Trial { since, trials } if began >= *since => {
                let trials = trials.saturating_add(1);
                self.open(ended, trials);
                true
            }
            BreakerState::Open { .. } | BreakerState::Trial { .. } => false,
        }
    }

    pub(crate) fn trial_left(&mut self, now: Instant) {
        if let BreakerState::Trial { trials, .. } = self.state {
            self.state = BreakerState::Open { until: now, trials };
        }
    }

    fn open(&mut self, now: Instant, trials: u32) {
        let until = now + pause::with_jitter(SHORTEST_PAUSE, LONGEST_PAUSE, trials);
        self.state = BreakerState::Open { until, trials };
    }
}

impl BreakerState {
    const CLOSED: Self = Self::Closed {
        failures: 0,
        last_failure: None,
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::now;

    const DEADLINE: Duration = Duration::from_millis(50);

    struct Trace {
        breaker: Breaker,
        start: Instant,
    }

    impl Trace {
        fn new(failures: NonZeroU32) -> Self {
            Self {
                breaker: Breaker::new(failures, DEADLINE),
                start: now(),
            }
        }

        fn at(&self, millis: u64) -> Instant {
            self.start + Duration::from_millis(millis)
        }

        fn failed(&mut self, began: u64, ended: u64) -> bool {
            let (began, ended) = (self.at(began), self.at(ended));
            self.breaker.failed(began, ended)
        }

        fn opened() -> Self {
            let mut trace = Self::new(NonZeroU32::MIN);
            assert!(trace.failed(0, 0));
            trace
        }
    }

    /// Plays calls to a server that is silent from 0 ms on. Returns the time at which the breaker
    /// opened.
    fn opens_after(connections: u64, silent_millis: u64) -> Option<u64> {
        let mut trace = Trace::new(DEFAULT_FAILURES);
        let mut calls: Vec<u64> = (0..2 * connections).map(|slot| slot * 7 % 50).collect();
        loop {
            let slot = (0..calls.len()).min_by_key(|&slot| calls[slot]).unwrap();
            let began = calls[slot];
            let ended = (began + 50).min(silent_millis.max(began + 1));
            if began > silent_millis {
                return None;
            }
            if ended < began + 50 {
                let began = trace.at(began);
                trace.breaker.answered(began);
            } else if trace.failed(began, ended) {
                return Some(ended);
            }
            calls[slot] = ended;
        }
    }

    #[test]
    fn short_silence_never_opens_breaker() {
        for connections in [1, 2, 4, 8] {
            assert_eq!(
                opens_after(connections, 70),
                None,
                "{connections} connections"
            );
        }
    }

    #[test]
    fn dead_server_opens_breaker_within_500_ms() {
        for connections in [1, 2, 4, 8] {
            let opened = opens_after(connections, u64::MAX / 2).unwrap();
            assert!(
                (250..=500).contains(&opened),
                "{connections} connections: {opened} ms"
            );
        }
    }

    #[test]
    fn answer_resets_the_count() {
        let mut trace = Trace::new(NonZeroU32::new(2).unwrap());
        for began in (0..1_000).step_by(100) {
            assert!(!trace.failed(began, began + 50));
            assert!(!trace.breaker.answered(trace.start));
        }
        assert!(!trace.failed(1_000, 1_050));
        assert!(trace.failed(1_050, 1_100), "two in a row");
    }

    #[test]
    fn open_breaker_refuses_until_its_pause_ends() {
        let mut trace = Trace::opened();
        assert!(!trace.breaker.admit(trace.at(49)));
        assert!(!trace.breaker.is_closed());
        assert!(trace.breaker.would_admit(trace.at(100)) && trace.breaker.admit(trace.at(100)));
        assert!(!trace.breaker.admit(trace.at(101)), "one trial at a time");
    }

    #[test]
    fn only_trial_closes_breaker() {
        let mut trace = Trace::opened();
        assert!(!trace.breaker.answered(trace.start));
        assert!(trace.breaker.admit(trace.at(100)));
        assert!(!trace.breaker.answered(trace.start) && !trace.breaker.is_closed());
        assert!(trace.breaker.answered(trace.at(100)) && trace.breaker.is_closed());
    }

    #[test]
    fn failed_trials_double_the_pause_within_bounds() {
        let mut trace = Trace::opened();
        let mut now = 0;
        for pause in [100, 200, 400, 400, 400] {
            assert!(!trace.breaker.admit(trace.at(now + pause / 2 - 1)));
            assert!(trace.breaker.admit(trace.at(now + pause)), "{pause}");
            assert!(trace.failed(now + pause, now + pause + 50));
            now += pause + 50;
        }
    }

    #[test]
    fn lost_trial_is_replaced() {
        let mut trace = Trace::opened();
        assert!(trace.breaker.admit(trace.at(100)));
        assert!(!trace.breaker.admit(trace.at(149)));
        assert!(trace.breaker.admit(trace.at(150)));
        assert!(!trace.failed(100, 151), "the lost trial no longer counts");
        assert!(trace.breaker.answered(trace.at(150)));
    }
}
