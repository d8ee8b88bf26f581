//! Tests the turns of a leaky bucket while some are cancelled.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_assert, proptest};
use tower_quota_core::{Algorithm, Charge, Decision, Entry, Operation, Quota, Timestamp};

use super::config;
use super::trace::{KEY, fraction, micros, quota_by};

const START: u64 = 1_763_712_345_678_901;

/// A queue, and the turns of its requests.
struct Queue {
    quota: Quota,
    entry: Entry,
    now: u64,
    /// The start and the cost of each turn that was not cancelled.
    turns: Vec<(u64, u64)>,
    /// The decisions with the turns, in the same order.
    decisions: Vec<Decision>,
}

impl Queue {
    fn new(quota: Quota) -> Self {
        Self {
            quota,
            entry: Entry::default(),
            now: START,
            turns: Vec::new(),
            decisions: Vec::new(),
        }
    }

    fn decide(&mut self, operation: Operation, charge: Charge<'_>) -> Decision {
        let now = Timestamp::from_micros(self.now);
        self.entry.decide(operation, &[charge], now)
    }

    /// Takes a turn, and returns whether there was one.
    fn join(&mut self, cost: u64) -> bool {
        let quota = self.quota;
        let decision = self.decide(
            Operation::Check,
            Charge::new("queue", &quota, &KEY).cost(cost),
        );
        if decision.is_allowed() {
            self.turns.push((self.now + micros(decision.wait()), cost));
            self.decisions.push(decision);
            return true;
        }
        false
    }

    /// Cancels one of the turns that have not begun.
    fn cancel(&mut self, number: usize) {
        let quota = self.quota;
        let (_, cost) = self.turns.remove(number);
        let mut decision = self.decisions.remove(number);
        let refund = decision.refund().unwrap();
        let charge = Charge::new("queue", &quota, &KEY).cost(cost);
        self.decide(refund, charge.turn(decision.statuses()[0].reset_after()));
    }

    /// Asserts that no turn begins before the units of the previous turn have drained.
    fn are_even(&self) -> Result<(), String> {
        let mut turns = self.turns.clone();
        turns.sort_unstable();
        for pair in turns.windows(2) {
            let [(first, cost), (second, _)] = pair else {
                continue;
            };
            // Turns begin at the next full microsecond.
            let drained = u128::from(second - first + 1) * u128::from(self.quota.refill());
            if drained < u128::from(*cost) * u128::from(self.quota.grain()) {
                return Err(format!("{first} and {second} by {:?}", self.quota));
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn cancelled_turns_keep_the_stream_even(
        quota in quota_by(Algorithm::LeakyBucket)
            .prop_filter("turns of a microsecond", |quota| quota.grain() >= quota.refill()),
        steps in vec((0..20_000_u32, any::<u16>(), any::<Option<usize>>()), 1..60),
    ) {
        let mut queue = Queue::new(quota);
        for (pause, share, cancelled) in steps {
            queue.now += match pause % 2 {
                0 => 0,
                _ => fraction(micros(quota.window()), pause),
            };
            queue.join(fraction(quota.capacity() / 4, share.into()).max(1));
            let begun = queue.turns.iter().filter(|(start, _)| *start <= queue.now).count();
            let waiting = queue.turns.len() - begun;
            if let Some(cancelled) = cancelled && waiting > 0 {
                queue.cancel(begun + cancelled % waiting);
            }
            prop_assert!(queue.are_even().is_ok(), "{:?}", queue.are_even());
        }
    }
}

/// Covers a client that fills the queue repeatedly, and cancels all turns except the last.
#[test]
fn client_cannot_save_turns_for_a_burst() {
    let quota = Quota::per_second(1)
        .leaky_bucket()
        .for_waits_of(Duration::from_secs(60));
    let mut queue = Queue::new(quota);
    for _ in 0..20 {
        let kept = queue.turns.len();
        while queue.join(1) {}
        while queue.turns.len() > kept + 1 {
            queue.cancel(kept);
        }
    }
    queue.are_even().unwrap();
    assert_eq!(queue.turns.last(), Some(&(START + 60_000_000, 1)));
}

#[test]
fn cancelled_turns_come_back_from_the_last() {
    let mut queue = Queue::new(Quota::per_second(1).leaky_bucket().queue(9));
    while queue.join(1) {}
    while queue.turns.len() > 3 {
        queue.cancel(queue.turns.len() - 1);
    }
    assert!(queue.join(1));
    assert_eq!(queue.turns.last(), Some(&(START + 3_000_000, 1)));
}
