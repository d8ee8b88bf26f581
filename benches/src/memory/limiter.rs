//! tower-quota's `Limiter` on a memory store, and its suite beside the peers' direct interfaces.

use std::error::Error;

use tower_quota_core::{Limiter, MemoryStore, Quota};

use super::allowance::{Allowance, Visit};
use super::contender::Contender;
use super::entrants::{Entrant, GOVERNOR, QUOTA, Setup};
use super::rounds::{Load, rounds};
use super::{MILLION, compare, filled, names, only, pace};
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
        ("1m", Traffic::Uniform(MILLION), Visit::Used),
    ] {
        let case = format!("limiter/1-limit/u64/{name}");
        let mut entrants = vec![Entrant {
            name: LIMITER,
            make: |setup| Ok(Box::new(limiter(setup.visit.allowances(setup.limits)))),
        }];
        entrants.extend(only(&[GOVERNOR, QUOTA]));
        let all = filled(
            entrants,
            Setup {
                limits: 1,
                keys: traffic.keys(),
                visit,
            },
        )?;
        let figures = rounds(
            &all,
            Load {
                traffic,
                visit,
                threads: 1,
            },
            pace(quick),
        )?;
        compare(&mut report, &case, &names(&all), &figures);
    }
    Ok(report)
}
