//! Steady load, and work that becomes slow.

use super::best_fixed;
use super::peers::Ours;
use super::service::{Scene, Work, run};

const LOADS: [f64; 6] = [0.5, 1.0, 1.5, 2.0, 4.0, 10.0];

/// Compares with the best fixed limit, for three seeds.
fn compare(work: Work) {
    let unloaded = run(&Scene::steady(work, 0.3), &mut Ours::new()).p99(10, 30);
    for load in LOADS {
        let best = best_fixed(|| Scene::steady(work, load), 10, 30, 2.0 * unloaded);
        let (mut goodput, mut p99) = (0.0, 0.0);
        for seed in 1..=3 {
            let scene = Scene {
                seed,
                ..Scene::steady(work, load)
            };
            let outcome = run(&scene, &mut Ours::new());
            goodput += outcome.goodput(10, 30) / 3.0;
            p99 += outcome.p99(10, 30) / 3.0;
        }
        let share = goodput / best;
        assert!(
            share >= 0.9,
            "{work:?}, load {load}: {share:.2} of {best:.0}"
        );
        let slower = p99 / unloaded;
        assert!(
            slower <= 2.0,
            "{work:?}, load {load}: p99 times {slower:.2}"
        );
    }
}

#[test]
fn exponential_work_is_answered_at_every_load() {
    compare(Work::Exponential);
}

#[test]
fn regular_work_is_answered_at_every_load() {
    compare(Work::Fixed);
}

#[test]
fn work_with_a_floor_is_answered_at_every_load() {
    compare(Work::Floor);
}

#[test]
fn fast_reads_and_slow_writes_are_answered_at_every_load() {
    compare(Work::Bimodal);
}

#[test]
fn heavy_tails_are_answered_at_every_load() {
    compare(Work::HeavyTail);
}

#[test]
fn change_of_mix_is_no_overload() {
    let scene = || Scene {
        seconds: 120.0,
        ..Scene::steady(Work::Mixed, 2.0)
    };
    let best = best_fixed(scene, 20, 120, f64::MAX);
    let goodput = run(&scene(), &mut Ours::new()).goodput(20, 120);
    assert!(goodput >= 0.9 * best, "{goodput:.0} of {best:.0}");
}

#[test]
fn slow_work_and_back_costs_ten_seconds_at_most() {
    for work in [Work::Exponential, Work::Fixed, Work::Floor] {
        let scene = Scene {
            seconds: 80.0,
            slowness: Box::new(|now| {
                if (20.0..50.0).contains(&now) {
                    5.0
                } else {
                    1.0
                }
            }),
            ..Scene::steady(work, 2.0)
        };
        let outcome = run(&scene, &mut Ours::new());
        let slow = outcome.goodput(30, 50) / 320.0;
        assert!(slow >= 0.9, "{work:?}: {slow:.2} while slow");
        let back = outcome.goodput(60, 80) / 1_600.0;
        assert!(back >= 0.9, "{work:?}: {back:.2} afterwards");
        let p99 = outcome.p99(60, 80);
        let before = outcome.p99(10, 20);
        assert!(
            p99 <= 1.2 * before,
            "{work:?}: {p99:.0} ms after {before:.0} ms"
        );
    }
}

#[test]
fn fewer_workers_lower_the_limit() {
    let scene = Scene {
        seconds: 80.0,
        workers: Box::new(|now| if now < 20.0 { 160.0 } else { 16.0 }),
        arrivals: Box::new(|_| 32_000.0),
        ..Scene::steady(Work::Exponential, 2.0)
    };
    let limits = run(&scene, &mut Ours::new()).limits();
    assert!((160..400).contains(&limits[19]), "{limits:?}");
    assert!((17..60).contains(&limits[79]), "{limits:?}");
}

#[test]
fn large_service_is_used_within_ten_seconds() {
    let scene = Scene {
        workers: Box::new(|_| 200.0),
        arrivals: Box::new(|_| 40_000.0),
        ..Scene::steady(Work::Exponential, 2.0)
    };
    let share = run(&scene, &mut Ours::new()).goodput(10, 30) / 20_000.0;
    assert!(share >= 0.9, "{share:.2}");
}

#[test]
fn single_worker_is_found() {
    let scene = Scene {
        seconds: 600.0,
        workers: Box::new(|_| 1.0),
        arrivals: Box::new(|_| 200.0),
        ..Scene::steady(Work::Exponential, 2.0)
    };
    let outcome = run(&scene, &mut Ours::new());
    let share = outcome.goodput(300, 600) / 100.0;
    assert!(share >= 0.8, "{share:.2}, {:?}", outcome.limits());
}

#[test]
fn requests_of_a_second_are_limited_too() {
    let scene = Scene {
        seconds: 1_200.0,
        slowness: Box::new(|_| 100.0),
        arrivals: Box::new(|_| 32.0),
        useful: 20.0,
        ..Scene::steady(Work::Exponential, 2.0)
    };
    let outcome = run(&scene, &mut Ours::new());
    let share = outcome.goodput(300, 1_200) / 16.0;
    assert!(share >= 0.85, "{share:.2}");
    assert!(outcome.p99(300, 1_200) <= 9_000.0);
}
