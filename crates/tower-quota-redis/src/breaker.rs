//! Stops calls to a server that does not answer.
//!
//! A few failures in a row open the breaker. Decisions then fail at once and uncharged, for a pause with jitter. The
//! first decision after the pause is the probe of the half-open breaker. An answer closes the breaker, and a failure
//! doubles the pause. Failures that overlap count once, so the number of connections does not matter.

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
    /// The time after which a probe counts as lost, perhaps with its runtime.
    probe_limit: Duration,
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
        probes: u32,
    },
    HalfOpen {
        since: Instant,
        probes: u32,
    },
}

impl Breaker {
    pub(crate) fn new(allowed_failures: NonZeroU32, probe_limit: Duration) -> Self {
        Self {
            allowed_failures,
            probe_limit,
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
            BreakerState::HalfOpen { since, .. } => {
                now.saturating_duration_since(since) >= self.probe_limit
            }
        }
    }

    /// Returns whether to send a new decision. After a pause, the decision becomes the probe.
    #[must_use]
    pub(crate) fn admit(&mut self, now: Instant) -> bool {
        let is_admitted = self.would_admit(now);
        if is_admitted
            && let BreakerState::Open { probes, .. } | BreakerState::HalfOpen { probes, .. } =
                self.state
        {
            self.state = BreakerState::HalfOpen { since: now, probes };
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
            BreakerState::HalfOpen { since, .. } if began >= since => {
                self.state = BreakerState::CLOSED;
                true
            }
            // Ignore the answer to an earlier call, which says little about the server now.
            BreakerState::Open { .. } | BreakerState::HalfOpen { .. } => false,
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
            BreakerState::HalfOpen { since, probes } if began >= *since => {
                let probes = probes.saturating_add(1);
                self.open(ended, probes);
                true
            }
            BreakerState::Open { .. } | BreakerState::HalfOpen { .. } => false,
        }
    }

    pub(crate) fn probe_left(&mut self, now: Instant) {
        if let BreakerState::HalfOpen { probes, .. } = self.state {
            self.state = BreakerState::Open { until: now, probes };
        }
    }

    fn open(&mut self, now: Instant, probes: u32) {
        let until = now + pause::with_jitter(SHORTEST_PAUSE, LONGEST_PAUSE, probes);
        self.state = BreakerState::Open { until, probes };
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
        assert!(!trace.breaker.admit(trace.at(101)), "one probe at a time");
    }

    #[test]
    fn only_probe_closes_breaker() {
        let mut trace = Trace::opened();
        assert!(!trace.breaker.answered(trace.start));
        assert!(trace.breaker.admit(trace.at(100)));
        assert!(!trace.breaker.answered(trace.start) && !trace.breaker.is_closed());
        assert!(trace.breaker.answered(trace.at(100)) && trace.breaker.is_closed());
    }

    #[test]
    fn failed_probes_double_the_pause_within_bounds() {
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
    fn lost_probe_is_replaced() {
        let mut trace = Trace::opened();
        assert!(trace.breaker.admit(trace.at(100)));
        assert!(!trace.breaker.admit(trace.at(149)));
        assert!(trace.breaker.admit(trace.at(150)));
        assert!(!trace.failed(100, 151), "the lost probe no longer counts");
        assert!(trace.breaker.answered(trace.at(150)));
    }
}
