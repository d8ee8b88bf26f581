//! `MemoryStore` beside other limiters in memory, through its public `check`.

mod allowance;
mod bytes;
pub(crate) mod contender;
mod entrants;
mod gcra;
pub(crate) mod governor;
pub(crate) mod keys;
mod limitador;
pub(crate) mod limiter;
pub(crate) mod ours;
pub(crate) mod quota;
mod rounds;
mod trypema;

use std::error::Error;
use std::time::Duration;

use tower_quota_core::MemoryStore;

pub(crate) use self::allowance::Visit;
pub(crate) use self::bytes::worker;
use self::entrants::{
    Entrant, Entrants, GOVERNOR, LIMITADOR, QUOTA, Setup, TOWER_QUOTA, TRYPEMA, UPKEPT,
};
use self::keys::Keyed;
use self::ours::{TowerQuota, mixed, quotas_in_turn};
use self::rounds::{Contenders, Load, Pace, fill, first_requests, rounds};
use crate::report::{Report, median_ratio};
use crate::traffic::Traffic;

const MILLION: u32 = 1_000_000;
/// Keys of the cases of first requests: half of the default capacity, so that no table is full.
const NEW: u32 = 500_000;
/// One key cannot be full again by its next request, a few nanoseconds later: so many take turns that a unit comes back,
/// and so few that they stay in the first caches.
const HOT_IN_TURN: Traffic = Traffic::InTurn(256);

pub(crate) fn run(quick: bool) -> Result<Report, Box<dyn Error>> {
    let mut bench = Bench {
        quick,
        pace: pace(quick),
        report: Report::default(),
    };
    for limits in [1, 3] {
        bench.used::<u64>(limits)?;
        bench.used::<String>(limits)?;
        bench.other_visits::<u64>(limits)?;
        bench.other_visits::<String>(limits)?;
    }
    bench.mixes()?;
    bytes::compare(quick, &mut bench.report)?;
    Ok(bench.report)
}

const fn pace(quick: bool) -> Pace {
    let (rounds, millis) = if quick { (5, 10) } else { (15, 30) };
    Pace {
        rounds,
        span: Duration::from_millis(millis),
    }
}

struct Bench {
    quick: bool,
    pace: Pace,
    report: Report,
}

impl Bench {
    /// Measures requests that find a partly used bucket.
    fn used<K: Entrants>(&mut self, limits: usize) -> Result<(), Box<dyn Error>> {
        let group = format!("memory/{}/{}", limits_of(limits), K::NAME);
        let setup = |keys| Setup {
            limits,
            keys,
            visit: Visit::Used,
        };
        let load = |traffic| Load {
            traffic,
            visit: Visit::Used,
            threads: 1,
        };
        for (name, traffic) in [("hot", Traffic::Hot), ("10k", Traffic::Uniform(10_000))] {
            let all = filled(K::entrants(), setup(traffic.keys()))?;
            self.case(&format!("{group}/{name}"), &all, load(traffic))?;
            self.two_threads(limits, name, &all, traffic)?;
        }
        // With a million keys limitador needs gigabytes and minutes, trypema seconds.
        let is_slow = |entrant: &Entrant<K>| [TRYPEMA, LIMITADOR].contains(&entrant.name);
        let of_a_million = K::entrants()
            .into_iter()
            .filter(|entrant| !(self.quick && is_slow(entrant)))
            .collect();
        let all = filled(of_a_million, setup(MILLION))?;
        self.case(
            &format!("{group}/1m"),
            &all,
            load(Traffic::Uniform(MILLION)),
        )?;
        self.case(&format!("{group}/zipf"), &all, load(Traffic::Zipf(MILLION)))?;
        self.two_threads(limits, "1m", &all, Traffic::Uniform(MILLION))?;
        drop(all);
        if !self.quick {
            let all = filled(
                only::<K>(&[TOWER_QUOTA, GOVERNOR, QUOTA]),
                setup(10 * MILLION),
            )?;
            self.case(
                &format!("{group}/10m"),
                &all,
                load(Traffic::Uniform(10 * MILLION)),
            )?;
        }
        Ok(())
    }

    /// Measures the same limiters asked by two threads at once, by keys of type `u64` only.
    fn two_threads<K: Keyed>(
        &mut self,
        limits: usize,
        name: &str,
        all: &Contenders<K>,
        traffic: Traffic,
    ) -> Result<(), Box<dyn Error>> {
        if K::NAME != <u64 as Keyed>::NAME {
            return Ok(());
        }
        let load = Load {
            traffic,
            visit: Visit::Used,
            threads: 2,
        };
        self.case(
            &format!("memory/two-threads/{}/{name}", limits_of(limits)),
            all,
            load,
        )
    }

    /// Measures requests that find a full bucket, an exhausted one or none, beside the fastest peers.
    fn other_visits<K: Entrants>(&mut self, limits: usize) -> Result<(), Box<dyn Error>> {
        let group = format!("memory/{}/{}", limits_of(limits), K::NAME);
        let peers = || only::<K>(&[TOWER_QUOTA, GOVERNOR, QUOTA]);
        for (name, traffic, visit) in [
            ("hot/refilled", HOT_IN_TURN, Visit::Refilled),
            ("10k/refilled", Traffic::Uniform(10_000), Visit::Refilled),
            ("1m/refilled", Traffic::Uniform(MILLION), Visit::Refilled),
            ("refused", Traffic::Uniform(10_000), Visit::Refused),
        ] {
            let all = filled(
                peers(),
                Setup {
                    limits,
                    keys: traffic.keys(),
                    visit,
                },
            )?;
            self.case(
                &format!("{group}/{name}"),
                &all,
                Load {
                    traffic,
                    visit,
                    threads: 1,
                },
            )?;
        }
        let setup = Setup {
            limits,
            keys: NEW,
            visit: Visit::Used,
        };
        let figures = first_requests(&peers(), setup, self.pace.rounds)?;
        let names: Vec<_> = peers().iter().map(|entrant| entrant.name).collect();
        compare(&mut self.report, &format!("{group}/new"), &names, &figures);
        Ok(())
    }

    /// Measures requests with different limits, against requests that all ask the same ones.
    fn mixes(&mut self) -> Result<(), Box<dyn Error>> {
        const UNIFORM: &str = "tower-quota, always the same";
        type Numbers = Contenders<u64>;
        let uniform = || {
            Box::new(TowerQuota::<3>::new(
                MemoryStore::new(),
                Visit::Used.allowances(3),
            ))
        };
        let mixed: Numbers = vec![
            (TOWER_QUOTA, Box::new(mixed())),
            (UNIFORM, uniform()),
            (GOVERNOR, Box::new(governor::mixed())),
        ];
        let in_turn: Numbers = vec![
            (TOWER_QUOTA, Box::new(quotas_in_turn())),
            (UNIFORM, uniform()),
        ];
        let traffic = Traffic::Uniform(10_000);
        for (case, all) in [
            ("memory/mixed/u64/10k", mixed),
            ("memory/quotas-in-turn/u64/10k", in_turn),
        ] {
            all.iter()
                .for_each(|(_, contender)| fill(&**contender, traffic.keys()));
            let figures = rounds(
                &all,
                Load {
                    traffic,
                    visit: Visit::Used,
                    threads: 1,
                },
                self.pace,
            )?;
            self.report.times(case, &names(&all), &figures);
            self.report
                .ratio(case, median_ratio(&figures[1], &figures[0]));
            if let Some(governor) = figures.get(2) {
                self.report.ratio(
                    format!("{case}/vs-governor"),
                    median_ratio(governor, &figures[0]),
                );
            }
        }
        Ok(())
    }

    fn case<K: Keyed>(
        &mut self,
        case: &str,
        all: &Contenders<K>,
        load: Load,
    ) -> Result<(), Box<dyn Error>> {
        let figures = rounds(all, load, self.pace).map_err(|error| format!("{case}: {error}"))?;
        compare(&mut self.report, case, &names(all), &figures);
        Ok(())
    }
}

/// Reports the figures of a case, tower-quota's first, and its ratios to the peers that have one.
fn compare(report: &mut Report, case: &str, names: &[&str], figures: &[Vec<f64>]) {
    report.times(case, names, figures);
    for (peer, of_case) in [(GOVERNOR, ""), (UPKEPT, "/upkept"), (QUOTA, "/vs-quota")] {
        if let Some(position) = names.iter().position(|name| *name == peer) {
            report.ratio(
                format!("{case}{of_case}"),
                median_ratio(&figures[position], &figures[0]),
            );
        }
    }
}

fn names<K>(all: &Contenders<K>) -> Vec<&'static str> {
    all.iter().map(|(name, _)| *name).collect()
}

/// Returns the limiters of these names.
fn only<K: Entrants>(names: &[&str]) -> Vec<Entrant<K>> {
    K::entrants()
        .into_iter()
        .filter(|entrant| names.contains(&entrant.name))
        .collect()
}

/// Makes limiters and counts every key once. tower-quota comes last, so that nothing it has counted is full again before
/// the rounds are over.
fn filled<K: Keyed>(
    entrants: Vec<Entrant<K>>,
    setup: Setup,
) -> Result<Contenders<K>, Box<dyn Error>> {
    let make = |entrant: Entrant<K>| {
        let contender = (entrant.make)(setup)?;
        fill(&*contender, setup.keys);
        Ok((entrant.name, contender))
    };
    let mut contenders: Contenders<K> = entrants
        .into_iter()
        .rev()
        .map(make)
        .collect::<Result<_, Box<dyn Error>>>()?;
    contenders.reverse();
    Ok(contenders)
}

const fn limits_of(limits: usize) -> &'static str {
    if limits == 1 { "1-limit" } else { "3-limits" }
}
