//! Flow control as in TCP: limits how many decisions are under way, so that answers come in time.
//!
//! An overloaded server answers everything late, and late answers are useless. So each partition keeps the weight under
//! way below a limit, and adapts that limit to its server:
//!
//! 1. The target time of a call is a third of the deadline: a decision may wait for one call, travel in the next, and
//!    has a third to spare. After a call the limit is multiplied by the target time over the measured time, by a half
//!    to two. It grows only if it held decisions back, or if calls are far faster than that.
//!    A server may be far away: then a call without any load takes as long, and the target is a quarter more than that.
//! 2. A decision is refused on arrival if those before it, at the limit in each call time, leave it too little time.
//! 3. One that has less time left than a call takes, and a quarter of what the load adds to it, is not sent.
//! 4. When the breaker closes, the limit starts at 1 and doubles: the load returns in steps that the server has
//!    answered.
//!
//! Nothing here reads a clock: instants are passed in.

use core::time::Duration;
use std::time::Instant;

/// The target time of a call is the deadline divided by this.
const TARGET_SHARE: u32 = 3;
/// A call that takes this part of the target says that more may be sent, whether more waits or not.
const FAST_SHARE: u32 = 4;
/// The part of a difference by which the time of a call without load rises.
const RISE_SHARE: u32 = 16;
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
    /// The time that a call takes without load: the least lately.
    unloaded: Option<Duration>,
}

/// The load that a call was sent under.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Load {
    /// Nothing else was under way.
    Alone,
    #[default]
    Shared,
    /// The limit held decisions back.
    HeldBack,
}

impl Flow {
    /// Creates the control for a server that was not measured yet: up to `most` weight at once.
    pub(super) fn new(deadline: Duration, most: usize) -> Self {
        Self {
            deadline,
            most,
            limit: most,
            changed: None,
            times: [Duration::ZERO; 3],
            measured: None,
            unloaded: None,
        }
    }

    /// Returns the weight that may be under way.
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// Returns how much time a decision must have left to be sent.
    pub(super) fn time_needed(&self, now: Instant) -> Duration {
        let call_time = self.call_time(now);
        // Of what the load adds, the next call may take more. But never all of the deadline is needed: then nothing would
        // be sent, and no call would measure that the server is fast again.
        let of_load = call_time.saturating_sub(self.unloaded.unwrap_or_default());
        (call_time + of_load / 4).min(self.deadline / 4 * 3)
    }

    /// Returns whether a decision that arrives behind this much weight can be answered in time.
    pub(super) fn is_in_time(&self, queued: usize, now: Instant) -> bool {
        let waves = u32::try_from(queued / self.limit).unwrap_or(u32::MAX);
        queued == 0 || self.call_time(now).saturating_mul(waves.saturating_add(1)) <= self.deadline
    }

    /// Notes how long a call took, whether it ended with an answer or at the deadline.
    pub(super) fn measure(&mut self, began: Instant, ended: Instant, load: Load) {
        let took = ended.saturating_duration_since(began);
        self.times = [took, self.times[0], self.times[1]];
        self.measured = Some(ended);
        if load == Load::Alone {
            // A way that has become longer is believed step by step, a shorter one at once.
            let known = self.unloaded.map_or(took, |known| {
                known + took.saturating_sub(known) / RISE_SHARE
            });
            self.unloaded = Some(known.min(took));
        }
        if self.changed.is_some_and(|changed| began < changed) {
            return;
        }
        let limit = self.adjusted(took);
        let may_grow = load == Load::HeldBack || took < self.target() / FAST_SHARE;
        if limit < self.limit || limit > self.limit && may_grow {
            self.limit = limit;
            self.changed = Some(ended);
        }
    }

    /// Restarts with the smallest limit.
    pub(super) fn restart(&mut self, now: Instant) {
        let fresh = Self::new(self.deadline, self.most);
        *self = Self {
            limit: 1,
            changed: Some(now),
            unloaded: self.unloaded,
            ..fresh
        };
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

    /// Returns the time that a call should take. It leaves a quarter of the deadline at least.
    fn target(&self) -> Duration {
        let of_far_server = self
            .unloaded
            .map_or(Duration::ZERO, |unloaded| unloaded + unloaded / 4);
        of_far_server.clamp(self.deadline / TARGET_SHARE, self.deadline / 4 * 3)
    }

    fn adjusted(&self, took: Duration) -> usize {
        let (target, took) = (self.target().as_micros(), took.as_micros().max(1));
        let product = (self.limit as u128).saturating_mul(target);
        // Rounded down, a small limit would not grow.
        let scaled = if took < target {
            product.div_ceil(took)
        } else {
            product / took
        };
        let scaled = usize::try_from(scaled).unwrap_or(usize::MAX);
        scaled
            .clamp((self.limit / 2).max(1), self.limit * 2)
            .min(self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEADLINE: Duration = Duration::from_millis(60);
    const TARGET: Duration = Duration::from_millis(20);
    const MOST: usize = 256;

    #[expect(
        clippy::disallowed_methods,
        reason = "instants cannot be made from nothing"
    )]
    fn start() -> Instant {
        Instant::now()
    }

    /// Plays calls one after the other on a server that takes this long for each unit of weight.
    fn play(flow: &mut Flow, mut now: Instant, per_weight: Duration, calls: u32) -> Instant {
        for _ in 0..calls {
            let took = per_weight * u32::try_from(flow.limit()).unwrap();
            flow.measure(now, now + took, Load::HeldBack);
            now += took;
        }
        now
    }

    #[test]
    fn limit_follows_the_server() {
        let mut flow = Flow::new(DEADLINE, MOST);
        let now = play(&mut flow, start(), Duration::from_millis(1), 10);
        assert_eq!(flow.limit(), 20, "20 ms is the target");
        assert!(
            (TARGET..TARGET * 3 / 2).contains(&flow.time_needed(now)),
            "{flow:?}"
        );
        let now = play(&mut flow, now, Duration::from_millis(40), 10);
        assert_eq!(flow.limit(), 1);
        play(&mut flow, now, Duration::from_micros(10), 10);
        assert_eq!(flow.limit(), MOST);
    }

    #[test]
    fn unused_limit_grows_only_by_fast_calls() {
        let mut flow = Flow::new(DEADLINE, MOST);
        let mut now = play(&mut flow, start(), Duration::from_millis(1), 10);
        for (took, limit) in [(TARGET / 3, 20), (TARGET / 5, MOST)] {
            for _ in 0..10 {
                flow.measure(now, now + took, Load::Shared);
                now += took;
            }
            assert_eq!(flow.limit(), limit);
        }
    }

    #[test]
    fn far_server_is_used_in_full() {
        for took in [TARGET, TARGET * 3 / 2, TARGET * 2] {
            let (mut flow, mut now) = (Flow::new(DEADLINE, MOST), start());
            for number in 0..100 {
                flow.measure(
                    now,
                    now + took,
                    if number % 10 == 0 {
                        Load::Alone
                    } else {
                        Load::HeldBack
                    },
                );
                now += took;
            }
            assert_eq!(flow.limit(), MOST, "{took:?}");
            assert_eq!(
                flow.time_needed(now),
                took,
                "the way adds nothing to be spared"
            );
            // More than the way takes is load.
            play(&mut flow, now, DEADLINE / 20, 20);
            assert!(
                (8..=20).contains(&flow.limit()),
                "{took:?}: {}",
                flow.limit()
            );
        }
    }

    #[test]
    fn load_is_not_taken_for_distance() {
        let (mut flow, mut now) = (Flow::new(DEADLINE, MOST), start());
        flow.measure(now, now + TARGET / 20, Load::Alone);
        for _ in 0..1_000 {
            flow.measure(now, now + TARGET * 2, Load::HeldBack);
            now += TARGET * 2;
        }
        assert_eq!((flow.limit(), flow.target()), (1, TARGET));
    }

    #[test]
    fn calls_sent_together_change_limit_once() {
        let (mut flow, now) = (Flow::new(DEADLINE, MOST), start());
        for _ in 0..8 {
            flow.measure(now, now + DEADLINE, Load::HeldBack);
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
        assert!(
            flow.is_in_time(80, now + LONGEST_VALID),
            "what was long ago says nothing"
        );
    }

    #[test]
    fn single_slow_call_refuses_nothing() {
        let mut flow = Flow::new(DEADLINE, MOST);
        let now = play(&mut flow, start(), Duration::from_micros(10), 5);
        flow.measure(now, now + DEADLINE, Load::Shared);
        assert!(flow.is_in_time(MOST, now + DEADLINE));
        assert!(flow.time_needed(now + DEADLINE) < TARGET);
    }

    #[test]
    fn flow_always_sends_something() {
        let (mut flow, now) = (Flow::new(DEADLINE, MOST), start());
        for _ in 0..100 {
            flow.measure(now, now + 10 * DEADLINE, Load::HeldBack);
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
