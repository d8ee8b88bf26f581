//! Tests that changes of shares and restarts exceed no quota.

use std::time::Duration;

use tower_quota_core::{MemoryStore, Quota};
use tower_quota_lease::{RegionSharesError, Regional};

use crate::region_world::{World, shares};

const HOUR: Duration = Duration::from_secs(3_600);
const MINUTE: Duration = Duration::from_secs(60);
/// The shares of the first region are low, and then high.
const LOW: [u32; 2] = [10, 60];
const HIGH: [u32; 2] = [60, 10];

fn quota() -> Quota {
    Quota::per_hour(1_000).fixed_window()
}

fn spend(world: &mut World, region: usize) -> u64 {
    let before = world.taken.len();
    while world.check(region, 10) {}
    10 * (world.taken.len() - before) as u64
}

fn learn_all(world: &mut World) {
    for region in 0..world.regions() {
        world.learn(region);
    }
}

#[test]
fn documents_of_equal_shares_lift_no_delay() {
    for quota in [
        quota(),
        Quota::per_day(1_000).fixed_window(),
        Quota::per_day(1_000).sliding_log(),
    ] {
        let mut world = World::new(quota, &LOW);
        assert_eq!(spend(&mut world, 1), 900);
        for _ in 0..20 {
            world.publish(&HIGH);
            learn_all(&mut world);
        }
        assert_eq!(spend(&mut world, 0), 100, "{quota:?}");
    }
}

#[test]
fn many_changes_lift_no_delay() {
    let mut world = World::new(Quota::per_day(1_000).fixed_window(), &LOW);
    assert_eq!(spend(&mut world, 1), 900);
    for number in 0..40 {
        world.publish(&[60 - number, 10 + number % 3]);
        learn_all(&mut world);
    }
    assert_eq!(spend(&mut world, 0), 100);
    world.pass(49 * HOUR);
    // The present shares are 21, 10 and 69 %.
    assert_eq!(spend(&mut world, 0), 900);
}

#[test]
fn equal_shares_end_no_delay_later() {
    let mut world = World::new(quota(), &LOW);
    world.publish(&HIGH);
    learn_all(&mut world);
    for _ in 0..2 * 60 {
        world.pass(MINUTE);
        world.publish(&HIGH);
        learn_all(&mut world);
    }
    assert_eq!(spend(&mut world, 0), 900);
}

#[test]
fn restart_keeps_former_shares() {
    let mut world = World::new(quota(), &LOW);
    assert_eq!(spend(&mut world, 1), 900);
    world.publish(&HIGH);
    learn_all(&mut world);
    assert_eq!(spend(&mut world, 0), 100);
    world.restart(0);
    assert_eq!(spend(&mut world, 0), 0);
    world.pass(2 * HOUR);
    assert_eq!(spend(&mut world, 0), 900);
}

#[test]
fn document_after_start_names_former_shares() {
    let mut world = World::new(quota(), &LOW);
    assert_eq!(spend(&mut world, 1), 900);
    let document = shares(&HIGH).replacing(&shares(&LOW));
    // The code has other shares, which no region used.
    world.start_with(0, &shares(&[30, 30]));
    world.read(0, &document);
    assert_eq!(spend(&mut world, 0), 100);
    // The code already has the shares of the document.
    world.start_with(0, &shares(&HIGH));
    world.read(0, &document);
    assert_eq!(spend(&mut world, 0), 0);
}

#[test]
fn former_shares_of_former_shares_are_kept() {
    let mut world = World::new(quota(), &LOW);
    assert_eq!(spend(&mut world, 1), 900);
    world.publish(&[30, 30]);
    learn_all(&mut world);
    world.publish(&HIGH);
    world.restart(0);
    assert_eq!(spend(&mut world, 0), 100);
}

#[test]
fn change_that_was_missed_is_waited_for() {
    let mut world = World::new(quota(), &HIGH);
    // The first region reads nothing while the others use the low shares.
    let low = shares(&LOW).replacing(&shares(&HIGH));
    world.start_with(1, &low);
    world.pass(2 * HOUR);
    assert_eq!(spend(&mut world, 1), 900);
    world.read(0, &shares(&HIGH).replacing(&shares(&LOW)));
    assert_eq!(spend(&mut world, 0), 100);
}

#[test]
fn added_region_waits_for_its_floor() {
    let mut world = World::new(quota(), &[30, 30, 1]);
    let added = shares(&[20, 20, 20]).replacing(&shares(&[30, 30]));
    world.start_with(2, &added);
    world.to_home(2, crate::region_world::Way::LosesCalls);
    assert_eq!(spend(&mut world, 2), 0);
    world.pass(2 * HOUR);
    assert_eq!(spend(&mut world, 2), 200);
}

#[test]
fn region_that_learns_within_minute_exceeds_nothing() {
    let mut world = World::new(Quota::new(1_000, MINUTE / 2).sliding_log(), &LOW);
    world.publish(&HIGH);
    world.learn(0);
    world.pass(Duration::from_secs(59));
    assert_eq!(spend(&mut world, 1), 900);
    world.learn(1);
    world.pass(Duration::from_secs(1));
    spend(&mut world, 0);
    assert_eq!(world.first_over(0), None);
}

#[test]
fn one_store_for_floor_and_pool_is_an_error() {
    let store = MemoryStore::new();
    let error = Regional::new(store.clone(), store, "eu", shares(&LOW)).unwrap_err();
    assert_eq!(error, RegionSharesError::OneStore);
    assert_eq!(
        error.to_string(),
        "the local and the home store are clones of one store: give the pool a store or a prefix of its own"
    );
}
