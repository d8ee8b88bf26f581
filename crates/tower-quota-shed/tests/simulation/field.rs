//! The algorithms of the field reproduce the cases of their authors, and lose where they are known to lose.

use std::time::Duration;

use super::limit::{Kind, Sample};
use super::peers::{Aimd, Algorithm, Believe, Gradient2, Ours, Vegas};
use super::service::{Scene, Work, run};

fn sample(milliseconds: u64, in_progress: usize, kind: Kind) -> Sample {
    Sample {
        ended: Duration::ZERO,
        took: Duration::from_millis(milliseconds),
        in_progress,
        kind,
    }
}

fn success(milliseconds: u64, in_progress: usize) -> Sample {
    sample(milliseconds, in_progress, Kind::Answered)
}

fn aimd(limit: f64, most: f64) -> Aimd {
    Aimd {
        limit,
        least: 1.0,
        most,
        timeout: Duration::from_secs(5),
        per_limit: false,
    }
}

#[test]
fn aimd_follows_published_cases() {
    let mut growing = aimd(20.0, 200.0);
    growing.completed(success(10, 10));
    assert_eq!(growing.limit(), 21);
    let mut dropping = aimd(30.0, 200.0);
    dropping.completed(sample(10, 30, Kind::Failed));
    assert_eq!(dropping.limit(), 27);
    let mut full = aimd(21.0, 21.0);
    full.completed(success(10, 20));
    assert_eq!(full.limit(), 21);
}

fn vegas(limit: f64, most: f64) -> Vegas {
    Vegas {
        limit,
        most,
        ..Vegas::new()
    }
}

#[test]
fn vegas_follows_published_cases() {
    for (milliseconds, in_progress, expected) in [(10, 11, 16), (50, 11, 9), (14, 14, 10)] {
        let mut vegas = Vegas {
            alpha: |_| 3.0,
            beta: |_| 6.0,
            ..vegas(10.0, 20.0)
        };
        vegas.completed(success(10, 10));
        assert_eq!(vegas.limit(), 10);
        vegas.completed(success(milliseconds, in_progress));
        assert_eq!(vegas.limit(), expected);
    }
    for (smoothing, limits) in [(1.0, [50, 25]), (0.5, [75, 56])] {
        let mut halving = Vegas {
            smoothing,
            decrease: |limit| limit / 2.0,
            ..vegas(100.0, 200.0)
        };
        halving.completed(success(10, 100));
        for limit in limits {
            halving.completed(success(20, 100));
            assert_eq!(halving.limit(), limit);
        }
    }
    let mut large = vegas(10_000.0, 20_000.0);
    large.completed(success(10_000, 5_000));
    assert_eq!(large.limit(), 10_000);
    large.completed(success(10_000, 6_000));
    assert_eq!(large.limit(), 10_024);
}

fn goodput(scene: &Scene, algorithm: &mut dyn Algorithm) -> f64 {
    run(scene, algorithm).goodput(10, 30) / 1_600.0
}

// These figures are the reason for an algorithm of our own.
#[test]
fn known_algorithms_lose_where_ours_does_not() {
    let noisy = Scene::steady(Work::Exponential, 2.0);
    let regular = Scene::steady(Work::Fixed, 1.5);
    let mixed = Scene::steady(Work::Bimodal, 2.0);
    let slow = Scene {
        slowness: Box::new(|now| if now > 9.0 { 5.0 } else { 1.0 }),
        ..Scene::steady(Work::Exponential, 2.0)
    };
    assert!(goodput(&noisy, &mut Vegas::new()) < 0.5);
    assert!(goodput(&noisy, &mut Gradient2::new()) < 0.9);
    assert!(goodput(&regular, &mut Gradient2::new()) < 0.5);
    assert!(goodput(&slow, &mut Aimd::new()) < 0.7 * 0.2);
    assert!(goodput(&mixed, &mut Believe::new()) < 0.5);
    for scene in [&noisy, &regular, &mixed] {
        assert!(goodput(scene, &mut Ours::new()) >= 0.85);
    }
    assert!(goodput(&slow, &mut Ours::new()) >= 0.85 * 0.2);
}
