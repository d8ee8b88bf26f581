//! Tests refusals, peeks, orders of limits and clocks that go back, which change no state.

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, prop_assert_eq, proptest};
use tower_quota_core::{Charge, Decision, Entry, Key, Name, Operation, Quota, Timestamp, decide};

use super::trace::{Play, quota, requests};
use super::{config, magnitude};

const NAMES: [Name; 4] = [
    Name::new("a"),
    Name::new("b"),
    Name::new("c"),
    Name::new("d"),
];
static KEYS: [Key<'static>; 2] = [
    Key::new(Name::new("key"), b"0"),
    Key::new(Name::new("key"), b"1"),
];
/// The longest trusted step back of a clock.
const TRUSTED: u64 = 60_000_000;
const START: u64 = 1_763_712_345_678_901;

/// Returns up to four limits with their keys.
fn limits() -> impl Strategy<Value = Vec<(Quota, usize)>> {
    vec((quota(), 0..KEYS.len()), 1..=NAMES.len())
}

/// Returns limits, and an order of them.
fn shuffled() -> impl Strategy<Value = (Vec<(Quota, usize)>, Vec<usize>)> {
    limits().prop_flat_map(|limits| {
        let order: Vec<usize> = (0..limits.len()).collect();
        (Just(limits), Just(order).prop_shuffle())
    })
}

/// Decides a request over all limits in an order. The costs have the positions of the limits.
fn check(
    entries: &mut [Entry; 2],
    limits: &[(Quota, usize)],
    order: &[usize],
    costs: &[u64; 4],
    now: u64,
) -> Decision {
    let charges: Vec<Charge<'_>> = order
        .iter()
        .map(|&limit| {
            Charge::new(NAMES[limit], &limits[limit].0, &KEYS[limits[limit].1]).cost(costs[limit])
        })
        .collect();
    let [one, other] = entries;
    let entry_of = |charge: usize| limits[order[charge]].1;
    decide(
        Operation::Check,
        &charges,
        Timestamp::from_micros(now),
        &mut [one, other],
        entry_of,
    )
}

fn by_name(decision: &Decision) -> Vec<tower_quota_core::LimitStatus> {
    let mut statuses = decision.statuses().to_vec();
    statuses.sort_by_key(|status| status.name);
    statuses
}

fn steps() -> impl Strategy<Value = Vec<(u64, [u64; 4])>> {
    vec(
        (magnitude(1, 1 << 42), proptest::array::uniform4(0..4_u64)),
        1..30,
    )
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn refusals_and_peeks_change_nothing(limits in limits(), steps in steps()) {
        let order: Vec<usize> = (0..limits.len()).collect();
        let (mut entries, mut now) = (<[Entry; 2]>::default(), START);
        for (pause, mut costs) in steps {
            now += pause;
            let before = entries.clone();
            check(&mut entries, &limits, &order, &[0; 4], now);
            prop_assert_eq!(&entries, &before);
            for (cost, (quota, _)) in costs.iter_mut().zip(&limits) {
                // Make every third cost large.
                *cost = if *cost == 3 { quota.capacity() } else { *cost };
            }
            if !check(&mut entries, &limits, &order, &costs, now).is_allowed() {
                prop_assert_eq!(&entries, &before);
            }
        }
    }

    #[test]
    fn order_of_limits_changes_nothing((limits, other_order) in shuffled(), steps in steps()) {
        let order: Vec<usize> = (0..limits.len()).collect();
        let (mut one, mut other) = (<[Entry; 2]>::default(), <[Entry; 2]>::default());
        let mut now = START;
        for (pause, costs) in steps {
            now += pause;
            let decision = check(&mut one, &limits, &order, &costs, now);
            let shuffled = check(&mut other, &limits, &other_order, &costs, now);
            prop_assert_eq!(decision.outcome(), shuffled.outcome());
            prop_assert_eq!(decision.tightest(), shuffled.tightest());
            prop_assert_eq!(by_name(&decision), by_name(&shuffled));
            prop_assert_eq!(decision.at(), shuffled.at());
        }
    }

    #[test]
    fn clock_that_jumps_back_stands_still(
        quota in quota(),
        trace in requests(40),
        jumps in vec(proptest::option::of(magnitude(1, TRUSTED)), 40),
    ) {
        let (mut steady, mut jumpy) = (Play::new(quota), Entry::default());
        let mut latest = 0;
        for (request, jump) in trace.into_iter().zip(jumps) {
            // The steady clock stands still while the other clock is behind the last charge.
            let cost = steady.arrive(request);
            let now = jump.map_or(steady.now, |jump| steady.now.saturating_sub(jump));
            steady.now = now.max(latest);
            let charge = [steady.charge(cost)];
            let decision = jumpy.decide(Operation::Check, &charge, Timestamp::from_micros(now));
            let expected = steady.check(cost);
            prop_assert_eq!(&decision, &expected);
            if decision.is_allowed() {
                latest = steady.now;
            }
        }
    }
}
