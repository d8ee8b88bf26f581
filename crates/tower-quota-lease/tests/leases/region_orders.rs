//! Tries every short order of what may happen to two regions.

use std::time::Duration;

use tower_quota_core::Quota;

use crate::region_world::{Taken, Way, World};

/// The cost of a request. Each floor and the pool have the units of one request.
const COST: u64 = 3;
const EXTRA: u64 = 2;
const HOUR: Duration = Duration::from_secs(3_600);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    CheckInEu,
    CheckInUs,
    Settle,
    Refund,
    Renew,
    PassHour,
    PassHalfHour,
    RestartEu,
    CutEu,
    LoseFloorOfEu,
    LosePool,
    ChangeShares,
}

/// The number of checks, which are the first of all steps.
const CHECKS: usize = 2;

const STEPS_OF_RATES: [Step; 10] = [
    Step::CheckInEu,
    Step::CheckInUs,
    Step::Settle,
    Step::Refund,
    Step::PassHour,
    Step::RestartEu,
    Step::CutEu,
    Step::LoseFloorOfEu,
    Step::LosePool,
    Step::ChangeShares,
];

const STEPS_OF_HOLDS: [Step; 10] = [
    Step::CheckInEu,
    Step::CheckInUs,
    Step::Refund,
    Step::Renew,
    Step::PassHalfHour,
    Step::RestartEu,
    Step::CutEu,
    Step::LoseFloorOfEu,
    Step::LosePool,
    Step::ChangeShares,
];

/// Returns whether the step has an effect after the steps before.
fn take(world: &mut World, step: Step, before: &[Step]) -> bool {
    match step {
        Step::RestartEu | Step::CutEu if before.last().is_none_or(|last| *last == step) => {
            return false;
        }
        Step::CheckInEu => drop(world.check(0, COST)),
        Step::CheckInUs => drop(world.check(1, COST)),
        Step::Settle | Step::Refund | Step::Renew => {
            let last = world.taken.len().checked_sub(1);
            let Some(last) = last.filter(|last| world.taken[*last].units == COST) else {
                return false;
            };
            match step {
                Step::Settle => world.settle(last, EXTRA),
                Step::Renew => world.renew(last),
                _ => world.refund(last),
            }
        }
        Step::PassHour => world.pass(HOUR),
        Step::PassHalfHour => world.pass(HOUR / 2),
        Step::RestartEu => world.restart(0),
        Step::CutEu => world.to_home(0, Way::LosesCalls),
        Step::LoseFloorOfEu | Step::LosePool => {
            let region = (step == Step::LoseFloorOfEu).then_some(0);
            if !world.taken.iter().any(|taken| is_of(taken, region)) {
                return false;
            }
            world.lose(region);
        }
        Step::ChangeShares => {
            let percents = [[60, 10], [30, 30]];
            let changes = before.iter().filter(|before| **before == step).count();
            world.publish(&percents[changes % 2]);
            world.learn(0);
            world.learn(1);
        }
    }
    true
}

fn is_of(taken: &Taken, region: Option<usize>) -> bool {
    match region {
        Some(region) => !taken.by_home && taken.region == region,
        None => taken.by_home,
    }
}

/// Tries all orders of this many steps that end with a check. Returns the first order that breaks the promise.
///
/// Only a check can exceed a quota, and a settlement adds its units to the debts too.
fn first_broken(quota: Quota, all: &[Step], length: usize) -> Option<(Vec<Step>, String)> {
    let mut numbers = vec![0; length];
    let choices = |position| match position + 1 == length {
        true => CHECKS,
        false => all.len(),
    };
    loop {
        let steps: Vec<Step> = numbers.iter().map(|number| all[*number]).collect();
        let mut world = World::new(quota, &[30, 30]);
        let mut last = length - 1;
        for (number, step) in steps.iter().enumerate() {
            if !take(&mut world, *step, &steps[..number]) {
                last = number;
                break;
            }
        }
        let settled = steps.iter().filter(|step| **step == Step::Settle).count();
        if let Some(over) = world.first_over(EXTRA * settled as u64) {
            return Some((steps, over));
        }
        // Go on with the next order that begins differently.
        numbers[last + 1..].fill(0);
        while numbers[last] == choices(last) - 1 {
            numbers[last] = 0;
            last = last.checked_sub(1)?;
        }
        numbers[last] += 1;
    }
}

fn assert_orders(quota: Quota, steps: &[Step], longest: usize) {
    for length in 1..=longest {
        assert_eq!(first_broken(quota, steps, length), None, "{quota:?}");
    }
}

#[test]
fn every_order_of_six_steps_exceeds_no_quota() {
    assert_orders(Quota::per_hour(10).fixed_window(), &STEPS_OF_RATES, 6);
    assert_orders(Quota::per_hour(10).sliding_log(), &STEPS_OF_RATES, 5);
    assert_orders(Quota::per_hour(10), &STEPS_OF_RATES, 5);
}

#[test]
fn orders_of_six_steps_exceed_no_held_limit() {
    assert_orders(Quota::concurrent(10).ttl(HOUR), &STEPS_OF_HOLDS, 6);
}
