//! tower-quota's `Limiter` on a memory store, and its suite beside the peers' direct interfaces.

use std::error::Error;

use super::allowance::Visit;
use super::entrants::{Entrant, GOVERNOR, Made, QUOTA, Setup};
use super::rounds::{Load, rounds};
use super::{MILLION, compare, filled, names, only, pace};
use crate::report::Report;
use crate::traffic::Traffic;

const LIMITER: &str = "tower-quota, Limiter";

/// Makes the contender.
fn limiter(setup: Setup) -> Made<u64> {
    let _ = setup.visit.allowances(setup.limits);
    Err("tower-quota has no Limiter yet".into())
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
        let mut entrants = vec![Entrant { name: LIMITER, make: limiter }];
        entrants.extend(only(&[GOVERNOR, QUOTA]));
        let all = filled(entrants, Setup { limits: 1, keys: traffic.keys(), visit })?;
        let figures = rounds(&all, Load { traffic, visit, threads: 1 }, pace(quick))?;
        compare(&mut report, &case, &names(&all), &figures);
    }
    Ok(report)
}
