//! Memory per key, each contender in a process of its own.

use std::error::Error;

use super::allowance::Visit;
use super::entrants::{Entrant, Entrants, GOVERNOR, QUOTA, Setup, TOWER_QUOTA, UPKEPT};
use super::keys::{Keyed, Long};
use super::rounds::fill;
use super::{MILLION, limits_of};
use crate::child;
use crate::report::Report;

/// Returns the most bytes that an entry may take, for keys of any length.
const fn bound(limits: usize) -> f64 {
    if limits == 1 { 64.0 } else { 120.0 }
}

/// Compares a million keys, ten million keys and long keys.
pub(super) fn compare(quick: bool, report: &mut Report) -> Result<(), Box<dyn Error>> {
    for limits in [1, 3] {
        per_key::<u64>(limits, MILLION, !quick, report)?;
        per_key::<String>(limits, MILLION, !quick, report)?;
    }
    per_key::<Long>(1, MILLION, false, report)?;
    if !quick {
        per_key::<u64>(1, 10 * MILLION, false, report)?;
        per_key::<u64>(3, 10 * MILLION, false, report)?;
        per_key::<String>(1, 10 * MILLION, false, report)?;
    }
    Ok(())
}

/// Reports the resident bytes per key: of tower-quota, governor and `quota`, or of all limiters.
fn per_key<K: Entrants>(
    limits: usize,
    keys: u32,
    all: bool,
    report: &mut Report,
) -> Result<(), Box<dyn Error>> {
    let group = format!("memory/bytes/{}", limits_of(limits));
    let many = if keys == MILLION { "" } else { "/10m" };
    let mut figures = Vec::new();
    for Entrant { name, .. } in K::entrants() {
        // The clock makes no difference to the memory.
        let is_asked = if all {
            name != UPKEPT
        } else {
            [TOWER_QUOTA, GOVERNOR, QUOTA].contains(&name)
        };
        if is_asked {
            let asked = [
                "memory-worker",
                name,
                K::NAME,
                &limits.to_string(),
                &keys.to_string(),
            ];
            let bytes = child::ask(&asked)?.first().copied().ok_or("no answer")?;
            report.row(
                &format!("{group}/{}{many}", K::NAME),
                name,
                vec![("bytes", bytes)],
            );
            figures.push(bytes);
        }
    }
    // tower-quota is the first, governor the second.
    let keys = if K::NAME == <u64 as Keyed>::NAME {
        String::new()
    } else {
        format!("/{}", K::NAME)
    };
    report.ratio(format!("{group}{keys}{many}"), figures[1] / figures[0]);
    report.ratio(
        format!("{group}{keys}{many}/bound"),
        bound(limits) / figures[0],
    );
    Ok(())
}

/// Prints the bytes per key, in the child process.
pub(crate) fn worker(
    contender: &str,
    key: &str,
    limits: usize,
    keys: u32,
) -> Result<(), Box<dyn Error>> {
    let grown = match key {
        <u64 as Keyed>::NAME => grown::<u64>,
        <String as Keyed>::NAME => grown::<String>,
        <Long as Keyed>::NAME => grown::<Long>,
        _ => return Err("no such keys".into()),
    };
    println!("{}", grown(contender, limits, keys)? / f64::from(keys));
    Ok(())
}

fn grown<K: Entrants>(contender: &str, limits: usize, keys: u32) -> Result<f64, Box<dyn Error>> {
    let entrant = K::entrants()
        .into_iter()
        .find(|entrant| entrant.name == contender)
        .ok_or("no such contender")?;
    let before = child::resident();
    let contender = (entrant.make)(Setup {
        limits,
        keys,
        visit: Visit::Used,
    })?;
    fill(&*contender, keys);
    let after = child::resident();
    drop(contender);
    Ok(after - before)
}
