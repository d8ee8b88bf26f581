//! Random traces of regions, with settlements, faults, restarts and changes of shares.

use std::time::Duration;

use proptest::prelude::*;
use tower_quota_core::{Algorithm, Operation, Quota};

use crate::region_world::{Addition, Kind, Way, World};

/// The largest addition to a settled cost.
const MOST_EXTRA: u64 = 3;

#[derive(Clone, Debug)]
enum Step {
    /// Sends requests until one is refused, and settles each by more units.
    Spend(usize, u64, Addition, u64),
    Refund(usize),
    Renew(usize),
    Peek(usize),
    Reset(usize),
    Charge(usize, u64),
    Force(usize, u64),
    /// Lets thousandths of the window pass.
    Pass(u32),
    Publish(Vec<u32>),
    Learn(usize),
    Restart(usize),
    ToHome(usize, Way),
    ToLocal(usize, Way),
    LoseFloor(usize),
    LosePool,
}

fn step(regions: usize) -> impl Strategy<Value = Step> {
    let addition = prop_oneof![
        6 => Just(Addition::None),
        1 => Just(Addition::AtMost),
        1 => Just(Addition::Shadow),
    ];
    let way = prop_oneof![
        3 => Just(Way::Open),
        1 => Just(Way::LosesCalls),
        1 => Just(Way::LosesAnswers),
    ];
    let region = 0..regions;
    let spend = (region.clone(), 1..30_u64, addition, 0..=MOST_EXTRA);
    prop_oneof![
        8 => spend.prop_map(|(region, cost, addition, extra)| {
            Step::Spend(region, cost, addition, extra)
        }),
        2 => (0..20_usize).prop_map(Step::Refund),
        1 => (0..20_usize).prop_map(Step::Renew),
        1 => region.clone().prop_map(Step::Peek),
        1 => region.clone().prop_map(Step::Reset),
        1 => (region.clone(), 1..50_u64).prop_map(|(region, units)| Step::Charge(region, units)),
        1 => (region.clone(), 1..50_u64).prop_map(|(region, units)| Step::Force(region, units)),
        6 => (0..1_200_u32).prop_map(Step::Pass),
        3 => percents(regions).prop_map(Step::Publish),
        2 => region.clone().prop_map(Step::Learn),
        2 => region.clone().prop_map(Step::Restart),
        2 => (region.clone(), way.clone()).prop_map(|(region, way)| Step::ToHome(region, way)),
        1 => (region.clone(), way).prop_map(|(region, way)| Step::ToLocal(region, way)),
        1 => region.prop_map(Step::LoseFloor),
        1 => Just(Step::LosePool),
    ]
}

fn percents(regions: usize) -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(1..33_u32, regions)
}

fn quota() -> impl Strategy<Value = Quota> {
    let algorithms = vec![
        Algorithm::TokenBucket,
        Algorithm::Gcra,
        Algorithm::FixedWindow,
        Algorithm::SlidingLog,
    ];
    let algorithm = prop::sample::select(algorithms);
    (3..200_u64, 1..5_000_u64, algorithm).prop_map(|(units, seconds, algorithm)| {
        Quota::new(units, Duration::from_secs(seconds))
            .try_algorithm(algorithm)
            .unwrap()
    })
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        6 => Just(Kind::Plain),
        1 => Just(Kind::CountsRefusals),
        1 => Just(Kind::Penalised),
    ]
}

fn trace() -> impl Strategy<Value = (Vec<u32>, Vec<Step>)> {
    (2..=3_usize).prop_flat_map(|regions| {
        let steps = prop::collection::vec(step(regions), 1..60);
        (percents(regions), steps)
    })
}

fn take(world: &mut World, step: &Step, quota: &Quota) {
    let is_hold = quota.algorithm() == Algorithm::Concurrent;
    match step {
        Step::Spend(region, cost, addition, extra) => {
            for _ in 0..40 {
                if !world.check_with(*region, *cost, *addition) {
                    break;
                }
                // More units of a hold would be a hold of their own.
                if !is_hold {
                    world.settle(world.taken.len() - 1, *extra);
                }
            }
        }
        Step::Refund(ago) => {
            if let Some(number) = world.taken.len().checked_sub(ago + 1) {
                world.refund(number);
            }
        }
        Step::Renew(ago) => {
            if let Some(number) = world.taken.len().checked_sub(ago + 1) {
                world.renew(number);
            }
        }
        Step::Peek(region) => drop(world.apply(*region, Operation::Peek, 1)),
        Step::Reset(region) => world.reset(*region),
        Step::Charge(region, units) => drop(world.apply(*region, Operation::Charge, *units)),
        Step::Force(region, units) => world.force(*region, *units),
        Step::Pass(thousandths) => world.pass(quota.window() * *thousandths / 1_000),
        Step::Publish(percents) => world.publish(percents),
        Step::Learn(region) => world.learn(*region),
        Step::Restart(region) => world.restart(*region),
        Step::ToHome(region, way) => world.to_home(*region, *way),
        Step::ToLocal(region, way) => world.to_local(*region, *way),
        Step::LoseFloor(region) => world.lose(Some(*region)),
        Step::LosePool => world.lose(None),
    }
}

fn first_over(quota: &Quota, kind: Kind, percents: &[u32], steps: &[Step]) -> Option<String> {
    let mut world = World::new(*quota, percents);
    world.kind = kind;
    for step in steps {
        take(&mut world, step, quota);
    }
    world.first_over(MOST_EXTRA * world.stores())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn any_requests_and_faults_exceed_no_quota(
        quota in quota(),
        kind in kind(),
        (percents, steps) in trace(),
    ) {
        prop_assert_eq!(first_over(&quota, kind, &percents, &steps), None);
    }

    #[test]
    fn any_holds_and_faults_exceed_no_limit(
        (units, seconds) in (3..200_u64, 1..5_000_u64),
        kind in kind(),
        (percents, steps) in trace(),
    ) {
        let quota = Quota::concurrent(units).ttl(Duration::from_secs(seconds));
        prop_assert_eq!(first_over(&quota, kind, &percents, &steps), None);
    }
}
