//! A quota that changes while counters live: what is left stays left.

use proptest::prelude::{prop_assert, prop_assert_eq, proptest};
use tollgate_core::{Charge, Operation, Timestamp};

use super::config;
use super::trace::{ANYBODY, Play, asks, quota};

proptest! {
    #![proptest_config(config())]

    #[test]
    fn what_is_left_stays_left_and_is_clamped(old in quota(), new in quota(), trace in asks(20)) {
        let mut play = Play::new(old);
        for ask in trace {
            let cost = play.arrive(ask);
            play.check(cost);
            let before = play.ask_at(play.now, play.charge(0)).standings()[0];
            let after = play.ask_at(play.now, Charge::new("limit", &new, &ANYBODY).cost(0)).standings()[0];
            if before.reset_after.is_zero() {
                prop_assert_eq!(after.remaining, new.capacity());
            } else {
                prop_assert_eq!(after.remaining, before.remaining.min(new.capacity()));
            }
            prop_assert_eq!(after.limit, new.capacity());
        }
    }

    #[test]
    fn versions_in_turn_admit_no_more_than_either(old in quota(), new in quota(), trace in asks(30)) {
        let mut play = Play::new(old);
        let now = Timestamp::from_micros(play.now);
        let (mut admitted, mut more) = (0, u64::MAX);
        for (position, ask) in trace.into_iter().enumerate() {
            // All at one instant: nothing comes back.
            let cost = play.arrive(ask).min(new.capacity());
            let quota = if position % 2 == 0 { old } else { new };
            let decision = play.subject.decide(Operation::Check, &[Charge::new("limit", &quota, &ANYBODY).cost(cost)], now);
            let left = decision.standings()[0].remaining;
            prop_assert!(left <= more.min(quota.capacity()), "{} left after {}", left, more);
            if decision.is_allowed() {
                admitted += cost;
                more = left;
            }
        }
        prop_assert!(admitted <= old.capacity().max(new.capacity()));
    }
}
