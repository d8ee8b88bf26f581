//! Tests that refunds leave at most the units that would remain without the charge.

use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, proptest};
use tower_quota_core::{Charge, Entry, Operation, Quota, Timestamp};

use super::bounds::starts_with_request;
use super::trace::{KEY, Play, quota, requests};
use super::{config, magnitude};

proptest! {
    #![proptest_config(config())]

    /// Asserts that refunds in any order leave no more than if only the other charges had been made.
    #[test]
    fn refunds_leave_no_more_than_uncharged(
        quota in quota(),
        trace in requests(30),
        refunded in vec(any::<(bool, bool, bool)>(), 30),
        pause in magnitude(1, 1 << 40),
    ) {
        if starts_with_request(&quota) {
            return Ok(());
        }
        let mut play = Play::new(quota);
        // Charges that are kept, and charges that are refunded at the end, each with its instant and cost.
        let (mut kept, mut late) = (Vec::new(), Vec::new());
        let refund = |play: &mut Play, (taken_at, cost), is_prepared| {
            let operation = Operation::Refund { taken_at: Timestamp::from_micros(taken_at) };
            let charge = Charge::new("limit", &quota, &KEY).cost(cost);
            let charge = if is_prepared { charge.refundable() } else { charge };
            play.entry.decide(operation, &[charge], Timestamp::from_micros(play.now));
        };
        for (request, (is_refunded, is_late, is_prepared)) in trace.into_iter().zip(refunded) {
            let cost = play.arrive(request);
            if !play.check_prepared(cost, is_prepared).is_allowed() {
                continue;
            }
            let charged = (play.now, cost);
            match (is_refunded, is_late) {
                (false, _) => kept.push(charged),
                (true, true) => late.push((charged, is_prepared)),
                (true, false) => refund(&mut play, charged, is_prepared),
            }
        }
        late.into_iter().for_each(|(charged, is_prepared)| refund(&mut play, charged, is_prepared));

        let mut without = Entry::default();
        for &(at, cost) in &kept {
            let charge = Charge::new("limit", &quota, &KEY).cost(cost);
            without.decide(Operation::Charge, &[charge], Timestamp::from_micros(at));
        }
        for now in [play.now, play.now + pause] {
            let left = |entry: &Entry| {
                let peek = [Charge::new("limit", &quota, &KEY).cost(0)];
                entry.clone().decide(Operation::Check, &peek, Timestamp::from_micros(now)).statuses()[0].remaining()
            };
            prop_assert!(left(&play.entry) <= left(&without), "{} left, not {}", left(&play.entry), left(&without));
        }
    }

    /// Asserts that up to eight prepared charges are refunded exactly, in any order and at any time.
    ///
    /// The remaining units are the same as with the other charges only.
    #[test]
    fn refunds_of_eight_charges_are_exact(
        quota in quota().prop_filter("a bucket", |quota| quota.algorithm().is_bucket()),
        trace in requests(40),
        fates in vec((any::<bool>(), 0..30_usize), 40),
        pause in magnitude(1, 1 << 40),
    ) {
        let mut play = Play::new(quota);
        let (mut kept, mut pending, mut prepared) = (Vec::new(), Vec::new(), 0);
        let charge = |cost| [Charge::new("limit", &quota, &KEY).cost(cost).refundable()];
        for (step, (request, (is_prepared, delay))) in trace.into_iter().zip(fates).enumerate() {
            let cost = play.arrive(request);
            let now = Timestamp::from_micros(play.now);
            pending.retain(|&(due, taken_at, cost)| {
                if due <= step {
                    play.entry.decide(Operation::Refund { taken_at }, &charge(cost), now);
                }
                due > step
            });
            let is_prepared = is_prepared && prepared < 8;
            if !play.check_prepared(cost, is_prepared).is_allowed() {
                continue;
            }
            match is_prepared {
                true => pending.push((step + 1 + delay, now, cost)),
                false => kept.push((now, cost)),
            }
            prepared += usize::from(is_prepared);
        }
        let mut without = Entry::default();
        kept.extend(pending.into_iter().map(|(_, taken_at, cost)| (taken_at, cost)));
        kept.sort_by_key(|&(at, _)| at);
        for (at, cost) in kept {
            without.decide(Operation::Charge, &[Charge::new("limit", &quota, &KEY).cost(cost)], at);
        }
        for now in [play.now, play.now + pause] {
            let status = |entry: &Entry| {
                let peek = [Charge::new("limit", &quota, &KEY).cost(0)];
                entry.clone().decide(Operation::Check, &peek, Timestamp::from_micros(now)).statuses()[0]
            };
            let (given, wanted) = (status(&play.entry), status(&without));
            prop_assert_eq!(given.remaining(), wanted.remaining());
            prop_assert_eq!(given.reset_after(), wanted.reset_after());
        }
    }

    /// Asserts that a refund of the last charge, at once or at any later time, undoes it.
    #[test]
    fn refund_of_the_last_charge_undoes_it(
        quota in quota(),
        trace in requests(20),
        pause in magnitude(1, 1 << 40),
        goes_on_refunded in any::<bool>(),
    ) {
        let mut play = Play::new(quota);
        for request in trace {
            let cost = play.arrive(request);
            let before = play.entry.clone();
            let mut decision = play.check(cost);
            let Some(refund) = decision.refund() else { continue };
            let charge = [Charge::new("limit", &quota, &KEY).cost(cost)];
            let peek = [Charge::new("limit", &quota, &KEY).cost(0)];
            let status = |entry: &Entry, at| entry.clone().decide(Operation::Check, &peek, at).statuses()[0];

            let now = Timestamp::from_micros(play.now);
            let mut refunded = play.entry.clone();
            refunded.decide(refund, &charge, now);
            let (given, wanted) = (status(&refunded, now), status(&before, now));
            prop_assert_eq!(given.remaining(), wanted.remaining());
            prop_assert_eq!(given.reset_after(), wanted.reset_after());

            if play.entry.at() == now {
                let later = Timestamp::from_micros(play.now + pause);
                let mut after = play.entry.clone();
                after.decide(refund, &charge, later);
                let (given, wanted) = (status(&after, later).remaining(), status(&before, later).remaining());
                if quota.algorithm().is_bucket() && before.full_at() > now {
                    // The bucket was still refilling another charge. A refund does not repeat the
                    // units that time has refilled.
                    prop_assert!(given <= wanted);
                } else {
                    prop_assert_eq!(given, wanted);
                }
            }
            if goes_on_refunded {
                play.entry = refunded;
            }
        }
    }

    /// Asserts that a refund of the units that a state reports as taken leaves no more than before.
    ///
    /// A state records no more than it can count.
    #[test]
    fn refund_gives_back_recorded_units(quota in quota(), first in 1..20_u64, cost in magnitude(1, u64::MAX)) {
        let mut entry = Entry::default();
        let mut decide = |operation, cost| {
            let charge = Charge::new("limit", &quota, &KEY).cost(cost);
            entry.decide(operation, &[charge], Timestamp::from_micros(1_763_712_345_678_901)).statuses()[0]
        };
        let before = decide(Operation::Charge, first).remaining();
        let taken = decide(Operation::Charge, cost).taken;
        prop_assert!(taken <= cost);
        prop_assert!(taken == cost || cost > quota.capacity());
        let taken_at = Timestamp::from_micros(1_763_712_345_678_901);
        let after = decide(Operation::Refund { taken_at }, taken).remaining();
        prop_assert!(after <= before, "{after} left, not {before}: {taken} of {cost} were taken");
    }
}

/// Checks workers that each charge a unit, and give the unit back a moment later.
#[test]
fn overlapping_refunds_leave_nothing_used() {
    let quota = Quota::per_minute(10);
    let charge = [Charge::new("limit", &quota, &KEY).refundable()];
    for workers in [1, 2, 5, 8] {
        let (mut entry, mut pending) = (Entry::default(), std::collections::VecDeque::new());
        for step in 0..2_000 {
            let now = Timestamp::from_micros(1_763_712_345_000_000 + step * 200_000);
            if pending.len() == workers {
                let taken_at = pending.pop_front().unwrap();
                entry.decide(Operation::Refund { taken_at }, &charge, now);
            }
            assert!(
                entry.decide(Operation::Check, &charge, now).is_allowed(),
                "{workers} workers, step {step}"
            );
            pending.push_back(now);
        }
        let now = pending.back().copied().unwrap();
        while let Some(taken_at) = pending.pop_front() {
            entry.decide(Operation::Refund { taken_at }, &charge, now);
        }
        assert!(entry.is_empty(), "{workers} workers");
    }
}
