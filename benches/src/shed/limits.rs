//! The algorithms on the same simulated traces.

use super::peers::{Aimd, Algorithm, Believe, Fixed, Gradient2, Ours, Vegas};
use super::service::{Outcome as Seconds, Scene, Work, run as simulate};
use crate::Outcome;
use crate::report::{Report, Table};

const LOADS: [f64; 6] = [0.5, 1.0, 1.5, 2.0, 4.0, 10.0];
const WORKS: [(&str, Work); 5] = [
    ("exponential", Work::Exponential),
    ("regular", Work::Fixed),
    ("floor and exponential", Work::Floor),
    ("nine fast reads, a slow write", Work::Bimodal),
    ("heavy tail", Work::HeavyTail),
];
const FIXED: [usize; 8] = [12, 16, 20, 24, 32, 48, 64, 96];

type Contender = (&'static str, fn() -> Box<dyn Algorithm>);

const CONTENDERS: [Contender; 6] = [
    ("tower-quota", || Box::new(Ours::new())),
    ("fixed, 200", || Box::new(Fixed(200))),
    ("AIMD", || Box::new(Aimd::new())),
    ("Vegas", || Box::new(Vegas::new())),
    ("Gradient2", || Box::new(Gradient2::new())),
    ("least mean", || Box::new(Believe::new())),
];

/// A scene, the seconds that count, and the highest latency of a good fixed limit.
struct Case {
    scene: Box<dyn Fn(u64) -> Scene>,
    from: usize,
    to: usize,
    p99: f64,
}

impl Case {
    /// Returns the goodput of the best fixed limit.
    fn best(&self) -> f64 {
        let mut best = 0.0_f64;
        for limit in FIXED {
            let (goodput, p99) = self.mean(1, || Box::new(Fixed(limit)));
            if p99 <= self.p99 {
                best = best.max(goodput);
            }
        }
        best
    }

    /// Returns the means of the goodput and of the 99th percentile.
    fn mean(&self, seeds: u64, contender: impl Fn() -> Box<dyn Algorithm>) -> (f64, f64) {
        let (mut goodput, mut p99) = (0.0, 0.0);
        for seed in 1..=seeds {
            let outcome: Seconds = simulate(&(self.scene)(seed), &mut *contender());
            goodput += outcome.goodput(self.from, self.to) / seeds as f64;
            p99 += outcome.p99(self.from, self.to) / seeds as f64;
        }
        (goodput, p99)
    }
}

pub(crate) fn run(quick: bool) -> Outcome<Report> {
    let seeds = if quick { 1 } else { 5 };
    let names = CONTENDERS.map(|(name, _)| name);
    let mut share = Table::new("simulated goodput, % of the best fixed limit", &names, 1);
    let mut slower = Table::new("simulated p99, times the unloaded p99", &names, 1);
    for (name, work) in WORKS {
        let unloaded = simulate(&Scene::steady(work, 0.3), &mut Fixed(1_000)).p99(10, 30);
        for load in LOADS {
            let case = Case {
                scene: Box::new(move |seed| Scene {
                    seed,
                    ..Scene::steady(work, load)
                }),
                from: 10,
                to: 30,
                p99: 2.0 * unloaded,
            };
            let best = case.best();
            let figures = CONTENDERS.map(|(_, contender)| case.mean(seeds, contender));
            let row = format!("{name}, load {load}");
            share.row(&row, figures.map(|(goodput, _)| percent(goodput / best)));
            slower.row(&row, figures.map(|(_, p99)| tenths(p99 / unloaded)));
        }
    }
    let mut troubles = Table::new(
        "simulated goodput in trouble, % of the best fixed limit",
        &names,
        1,
    );
    for (name, case) in troublesome() {
        let best = case.best();
        let figures = CONTENDERS.map(|(_, contender)| case.mean(seeds, contender));
        troubles.row(name, figures.map(|(goodput, _)| percent(goodput / best)));
    }
    Ok(Report::of([share, slower, troubles]))
}

fn percent(share: f64) -> Option<crate::report::Cell> {
    Some((share * 100.0).round().into())
}

fn tenths(ratio: f64) -> Option<crate::report::Cell> {
    Some(((ratio * 10.0).round() / 10.0).into())
}

fn case(from: usize, to: usize, scene: impl Fn() -> Scene + 'static) -> Case {
    Case {
        scene: Box::new(move |seed| Scene {
            seed,
            seconds: to as f64,
            ..scene()
        }),
        from,
        to,
        p99: f64::MAX,
    }
}

fn slow(from: f64, to: f64, times: f64) -> Box<dyn Fn(f64) -> f64> {
    Box::new(move |now| {
        if (from..to).contains(&now) {
            times
        } else {
            1.0
        }
    })
}

fn troublesome() -> Vec<(&'static str, Case)> {
    let doubled = || Scene::steady(Work::Exponential, 2.0);
    vec![
        (
            "work takes five times as long",
            case(30, 60, move || Scene {
                slowness: slow(20.0, 60.0, 5.0),
                ..doubled()
            }),
        ),
        (
            "ten seconds after five times as long",
            case(50, 80, move || Scene {
                slowness: slow(20.0, 40.0, 5.0),
                ..doubled()
            }),
        ),
        (
            "after a slow start",
            case(25, 60, move || Scene {
                slowness: Box::new(|now| 1.0 + 7.0 * f64::max(0.0, 1.0 - now / 20.0)),
                ..doubled()
            }),
        ),
        (
            "mix of reads and writes that changes",
            case(20, 120, || Scene::steady(Work::Mixed, 2.0)),
        ),
        (
            "pauses of 0.2 s",
            case(10, 60, move || Scene {
                pauses: Some((2.0, 0.2)),
                ..doubled()
            }),
        ),
        (
            "contended resource",
            case(10, 60, move || Scene {
                workers: Box::new(|_| 1_000.0),
                contention: |working| f64::max(1.0, (working * working) as f64 / 256.0),
                ..doubled()
            }),
        ),
        (
            "half of the requests fail fast",
            case(10, 60, || Scene {
                failing: Box::new(|_| 0.5),
                ..Scene::steady(Work::Exponential, 4.0)
            }),
        ),
        (
            "a shedder within",
            case(10, 60, || Scene {
                limit_within: Some(20),
                ..Scene::steady(Work::Exponential, 4.0)
            }),
        ),
        (
            "a tenth of the workers is left",
            case(50, 80, || Scene {
                workers: Box::new(|now| if now < 20.0 { 160.0 } else { 16.0 }),
                arrivals: Box::new(|_| 32_000.0),
                useful: 0.05,
                ..Scene::steady(Work::Exponential, 2.0)
            }),
        ),
        (
            "timeouts of 50 ms, a tenth of the workers is left",
            case(50, 80, || Scene {
                workers: Box::new(|now| if now < 20.0 { 160.0 } else { 16.0 }),
                arrivals: Box::new(|_| 32_000.0),
                timeout: Some(0.05),
                useful: 0.05,
                ..Scene::steady(Work::Exponential, 2.0)
            }),
        ),
        (
            "one worker",
            case(300, 600, || Scene {
                workers: Box::new(|_| 1.0),
                arrivals: Box::new(|_| 200.0),
                ..Scene::steady(Work::Exponential, 2.0)
            }),
        ),
    ]
}
