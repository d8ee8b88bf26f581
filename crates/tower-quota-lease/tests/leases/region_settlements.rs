//! Tests that settlements reach the store that admitted the request.

use std::time::Duration;

use tower_quota_core::{Operation, Quota};

use crate::region_world::World;

const HOUR: Duration = Duration::from_secs(3_600);

#[test]
fn settled_costs_stay_within_quota() {
    for quota in [
        Quota::per_hour(100),
        Quota::per_hour(100).fixed_window(),
        Quota::per_hour(100).sliding_log(),
    ] {
        let mut world = World::new(quota, &[30, 30]);
        for _ in 0..24 * 60 {
            for _ in 0..5 {
                if world.check(0, 1) {
                    world.settle(world.taken.len() - 1, 9);
                }
            }
            world.pass(HOUR / 60);
        }
        let units: u64 = world.taken.iter().map(|taken| taken.units).sum();
        println!("{:?}: {} units an hour", quota.algorithm(), units / 24);
        assert_eq!(world.first_over(9 * world.stores()), None, "{quota:?}");
    }
}

#[test]
fn surcharge_reaches_store_that_admitted() {
    let mut world = World::new(Quota::per_hour(100).fixed_window(), &[30, 30]);
    assert!(world.check(0, 10), "the floor has 30 units");
    world.settle(0, 20);
    assert!(world.check(0, 1), "the pool has 40 units");
    world.settle(1, 38);
    assert!(!world.check(0, 2));
    assert!(world.check(0, 1));
    assert!(!world.check(0, 1));
}

#[test]
fn charge_without_check_closes_floor_and_pool() {
    let mut world = World::new(Quota::per_hour(100).fixed_window(), &[30, 30]);
    assert!(world.apply(0, Operation::Charge, 100));
    assert!(!world.check(0, 1));
    assert!(world.check(1, 30), "the floor of another region");
    assert!(!world.check(1, 1));
}
