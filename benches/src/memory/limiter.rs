//! tower-quota's `Limiter` on a memory store, and its suite beside the peers' direct interfaces.

use std::error::Error;

use tower_quota_core::{Limiter, MemoryStore, Quota};

use super::allowance::{Allowance, Visit};
use super::contender::Contender;
use super::entrants::{Entrant, GOVERNOR, QUOTA, Setup, TOWER_QUOTA};
use super::ours::WithEveryone;
use super::rounds::{Contenders, Load, fill, first_requests, rounds};
use super::{MILLION, NEW, compare, filled, governor, names, only, pace};
use crate::report::Report;
use crate::traffic::Traffic;

const LIMITER: &str = "tower-quota, Limiter";

/// One limit, checked by `check_now`.
pub(crate) struct Direct(Limiter<MemoryStore>);

impl Contender<u64> for Direct {
    fn admits(&self, key: &u64) -> bool {
        self.0.check_now(key).is_allowed()
    }
}

/// Makes the contender.
pub(crate) fn limiter(allowances: &[Allowance]) -> Direct {
    let Allowance {
        name,
        units,
        period,
        burst,
    } = allowances[0];
    let quota = Quota::new(u64::from(units), period).burst(u64::from(burst));
    Direct(Limiter::new(MemoryStore::new(), name, quota))
}

pub(crate) fn run(quick: bool) -> Result<Report, Box<dyn Error>> {
    let mut report = Report::default();
    for (name, traffic, visit) in [
        ("hot", Traffic::Hot, Visit::Used),
        ("10k", Traffic::Uniform(10_000), Visit::Used),
        ("10k-refilled", Traffic::Uniform(10_000), Visit::Refilled),
        ("refused", Traffic::Uniform(10_000), Visit::Refused),
        ("1m", Traffic::Uniform(MILLION), Visit::Used),
    ] {
        let case = format!("limiter/1-limit/u64/{name}");
        let setup = Setup {
            limits: 1,
            keys: traffic.keys(),
            visit,
        };
        let load = Load {
            traffic,
            visit,
            threads: 1,
        };
        measure(&mut report, &case, &filled(entrants(), setup)?, load, quick)?;
    }
    let setup = Setup {
        limits: 1,
        keys: NEW,
        visit: Visit::Used,
    };
    let figures = first_requests(&entrants(), setup, pace(quick).rounds)?;
    let names: Vec<_> = entrants().iter().map(|entrant| entrant.name).collect();
    compare(&mut report, "limiter/1-limit/u64/new", &names, &figures);
    client_and_everyone(&mut report, quick)?;
    Ok(report)
}

fn entrants() -> Vec<Entrant<u64>> {
    let mut entrants = vec![Entrant {
        name: LIMITER,
        make: |setup| Ok(Box::new(limiter(setup.visit.allowances(setup.limits)))),
    }];
    entrants.extend(only(&[GOVERNOR, QUOTA]));
    entrants
}

/// Measures a limit of each client and a limit of everyone, decided together, on one thread and on two.
fn client_and_everyone(report: &mut Report, quick: bool) -> Result<(), Box<dyn Error>> {
    for (name, traffic) in [
        ("hot", Traffic::Hot),
        ("10k", Traffic::Uniform(10_000)),
        ("1m", Traffic::Uniform(MILLION)),
    ] {
        let all: Contenders<u64> = vec![
            (TOWER_QUOTA, Box::new(WithEveryone::new())),
            (GOVERNOR, Box::new(governor::with_everyone())),
        ];
        for (_, contender) in &all {
            fill(&**contender, traffic.keys());
        }
        for (group, threads) in [("", 1), ("two-threads/", 2)] {
            let load = Load {
                traffic,
                visit: Visit::Used,
                threads,
            };
            let case = format!("limiter/client-and-everyone/{group}{name}");
            measure(report, &case, &all, load, quick)?;
        }
    }
    Ok(())
}

fn measure(
    report: &mut Report,
    case: &str,
    all: &Contenders<u64>,
    load: Load,
    quick: bool,
) -> Result<(), Box<dyn Error>> {
    let figures = rounds(all, load, pace(quick)).map_err(|error| format!("{case}: {error}"))?;
    compare(report, case, &names(all), &figures);
    Ok(())
}
