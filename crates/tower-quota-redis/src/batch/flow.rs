//! Flow control as in TCP: limits how many decisions are under way, so that answers come in time.
//!
//! An overloaded server answers everything late, and late answers are useless. So each partition keeps the weight under
//! way below a limit, and adapts that limit to its server:
//!
//! 1. The target time of a call is a third of the deadline: a decision may wait for one call, travel in the next, and
//!    has a third to spare. After a call the limit is multiplied by the target time over the measured time, by a half
//!    to two. It grows only if it held decisions back.
//! 2. A decision is refused on arrival if those before it, at the limit in each call time, leave it too little time.
//! 3. One that has less time left than a call takes is not sent.
//! 4. When the breaker closes, the limit starts at 1 and doubles: the load returns in steps that the server has
//!    answered.
//!
//! Nothing here reads a clock: instants are passed in.

use core::time::Duration;
use std::time::Instant;

/// The target time of a call is the deadline divided by this.
const TARGET_SHARE: u32 = 3;
/// A measurement older than this says nothing about the server now.
const LONGEST_VALID: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Flow {
    deadline: Duration,
    most: usize,
    /// The weight that may be under way.
    limit: usize,
    /// The last change of the limit. Calls that began before it were sent under another limit.
    changed: Option<Instant>,
    /// The times of the last three calls, the last one first, and when that ended. Zero: there was none.
    times: [Duration; 3],
    measured: Option<Instant>,
}

impl Flow {
    /// Creates the control for a server that was not measured yet: up to `most` weight at once.
    pub(super) fn new(deadline: Duration, most: usize) -> Self {
        Self { deadline, most, limit: most, changed: None, times: [Duration::ZERO; 3], measured: None }
    }

    /// Returns the weight that may be under way.
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// Returns how much time a decision must have left to be sent.
    pub(super) fn time_needed(&self, now: Instant) -> Duration {
        // Never all of it: then nothing would be sent, and no call would measure that the server is fast again.
        self.call_time(now).min(self.deadline / 4 * 3)
    }

    /// Returns whether a decision that arrives behind this much weight can be answered in time.
    pub(super) fn is_in_time(&self, queued: usize, now: Instant) -> bool {
        let waves = u32::try_from(queued / self.limit).unwrap_or(u32::MAX);
        queued == 0 || self.call_time(now).saturating_mul(waves.saturating_add(1)) <= self.deadline
    }

    /// Notes how long a call took, whether it ended with an answer or at the deadline.
    pub(super) fn measure(&mut self, began: Instant, ended: Instant, was_held_back: bool) {
        let took = ended.saturating_duration_since(began);
        self.times = [took, self.times[0], self.times[1]];
        self.measured = Some(ended);
        if self.changed.is_some_and(|changed| began < changed) {
            return;
        }
        let limit = self.adjusted(took);
        if limit < self.limit || (limit > self.limit && was_held_back) {
            self.limit = limit;
            self.changed = Some(ended);
        }
    }

    /// Restarts with the smallest limit.
    pub(super) fn restart(&mut self, now: Instant) {
        *self = Self { limit: 1, changed: Some(now), ..Self::new(self.deadline, self.most) };
    }

    /// Returns the time that calls take now: the median of three, so that a single slow one does not count.
    fn call_time(&self, now: Instant) -> Duration {
        match self.measured {
            Some(measured) if now.saturating_duration_since(measured) < LONGEST_VALID => {
                let mut times = self.times;
                times.sort_unstable();
                times[1]
            }
            _ => Duration::ZERO,
        }
    }

    fn adjusted(&self, took: Duration) -> usize {
        let (target, took) = ((self.deadline / TARGET_SHARE).as_micros(), took.as_micros().max(1));
        let scaled = (self.limit as u128).saturating_mul(target) / took;
        let scaled = usize::try_from(scaled).unwrap_or(usize::MAX);
        scaled.clamp((self.limit / 2).max(1), self.limit * 2).min(self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEADLINE: Duration = Duration::from_millis(60);
    const TARGET: Duration = Duration::from_millis(20);
    const MOST: usize = 256;

    #[expect(clippy::disallowed_methods, reason = "instants cannot be made from nothing")]
    fn start() -> Instant {
        Instant::now()
    }

    /// Plays calls one after the other on a server that takes this long for each unit of weight.
    fn play(flow: &mut Flow, mut now: Instant, per_weight: Duration, calls: u32) -> Instant {
        for _ in 0..calls {
            let took = per_weight * u32::try_from(flow.limit()).unwrap();
            flow.measure(now, now + took, true);
            now += took;
        }
        now
    }

    #[test]
    fn limit_follows_the_server() {
        let mut flow = Flow::new(DEADLINE, MOST);
        let now = play(&mut flow, start(), Duration::from_millis(1), 10);
        assert_eq!(flow.limit(), 20, "20 ms is the target");
        assert!((TARGET..TARGET * 3 / 2).contains(&flow.time_needed(now)), "{flow:?}");
        let now = play(&mut flow, now, Duration::from_millis(40), 10);
        assert_eq!(flow.limit(), 1);
        play(&mut flow, now, Duration::from_micros(10), 10);
        assert_eq!(flow.limit(), MOST);
    }

    #[test]
    fn unused_limit_does_not_grow() {
        let mut flow = Flow::new(DEADLINE, MOST);
        let mut now = play(&mut flow, start(), Duration::from_millis(1), 10);
        for _ in 0..10 {
            flow.measure(now, now + Duration::from_micros(100), false);
            now += Duration::from_micros(100);
        }
        assert_eq!(flow.limit(), 20);
    }

    #[test]
    fn calls_sent_together_change_limit_once() {
        let (mut flow, now) = (Flow::new(DEADLINE, MOST), start());
        for _ in 0..8 {
            flow.measure(now, now + DEADLINE, true);
        }
        assert_eq!(flow.limit(), MOST / 2);
    }

    #[test]
    fn decision_in_long_queue_is_refused() {
        let mut flow = Flow::new(DEADLINE, MOST);
        assert!(flow.is_in_time(usize::MAX, start()), "nothing is known yet");
        let now = play(&mut flow, start(), Duration::from_millis(1), 20);
        assert!(flow.is_in_time(0, now) && flow.is_in_time(39, now));
        assert!(!flow.is_in_time(80, now));
        assert!(flow.is_in_time(80, now + LONGEST_VALID), "what was long ago says nothing");
    }

    #[test]
    fn single_slow_call_refuses_nothing() {
        let mut flow = Flow::new(DEADLINE, MOST);
        let now = play(&mut flow, start(), Duration::from_micros(10), 5);
        flow.measure(now, now + DEADLINE, false);
        assert!(flow.is_in_time(MOST, now + DEADLINE));
        assert!(flow.time_needed(now + DEADLINE) < TARGET);
    }

    #[test]
    fn flow_always_sends_something() {
        let (mut flow, now) = (Flow::new(DEADLINE, MOST), start());
        for _ in 0..100 {
            flow.measure(now, now + 10 * DEADLINE, true);
        }
        assert!(flow.time_needed(now + 10 * DEADLINE) < DEADLINE);
        assert!(flow.is_in_time(0, now + 10 * DEADLINE));
    }

    #[test]
    fn load_returns_gradually_after_restart() {
        let mut flow = Flow::new(DEADLINE, MOST);
        let mut now = start();
        flow.restart(now);
        let mut limits = Vec::new();
        while flow.limit() < MOST {
            limits.push(flow.limit());
            now = play(&mut flow, now, Duration::from_micros(10), 1);
        }
        assert_eq!(limits, [1, 2, 4, 8, 16, 32, 64, 128]);
    }
}
