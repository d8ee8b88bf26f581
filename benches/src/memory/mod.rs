//! `MemoryStore` beside other limiters in memory, through its public `check`.

mod bytes;
pub(crate) mod contender;
mod field;
mod gcra;
pub(crate) mod governor;
mod limitador;
pub(crate) mod ours;
mod rounds;
mod trypema;

use std::error::Error;
use std::time::Duration;

pub(crate) use self::bytes::worker;
use self::contender::Keyed;
use self::field::{Entrant, Field, GOVERNOR, LIMITADOR, TOWER_QUOTA, TRYPEMA, UPKEPT};
use self::rounds::{Contenders, Pace, fill, rounds};
use crate::report::{Report, median, median_ratio};
use crate::traffic::Traffic;

const MILLION: u32 = 1_000_000;

pub(crate) fn run(quick: bool) -> Result<Report, Box<dyn Error>> {
    let (rounds, millis) = if quick { (5, 10) } else { (15, 30) };
    let mut bench =
        Bench { quick, pace: Pace { rounds, span: Duration::from_millis(millis) }, report: Report::default() };
    for limits in [1, 3] {
        bench.tables::<u64>(limits)?;
        bench.tables::<String>(limits)?;
    }
    bytes::compare(quick, &mut bench.report)?;
    Ok(bench.report)
}

struct Bench {
    quick: bool,
    pace: Pace,
    report: Report,
}

impl Bench {
    /// All the ways in which requests spread.
    fn tables<K: Field>(&mut self, limits: usize) -> Result<(), Box<dyn Error>> {
        let group = format!("memory/{}/{}", limits_of(limits), K::NAME);
        for (name, traffic) in [("hot", Traffic::Hot), ("10k", Traffic::Uniform(10_000))] {
            let field = entered(K::entrants(), limits, traffic.keys())?;
            self.case(&format!("{group}/{name}"), &field, traffic, 1)?;
            self.two_threads(limits, name, &field, traffic)?;
        }
        // Of a million keys limitador needs gigabytes and minutes, trypema seconds.
        let is_slow = |entrant: &Entrant<K>| [TRYPEMA, LIMITADOR].contains(&entrant.name);
        let of_a_million = K::entrants().into_iter().filter(|entrant| !(self.quick && is_slow(entrant))).collect();
        let field = entered(of_a_million, limits, MILLION)?;
        self.case(&format!("{group}/1m"), &field, Traffic::Uniform(MILLION), 1)?;
        self.case(&format!("{group}/zipf"), &field, Traffic::Zipf(MILLION), 1)?;
        self.two_threads(limits, "1m", &field, Traffic::Uniform(MILLION))?;
        drop(field);
        if !self.quick {
            let is_of_them = |entrant: &Entrant<K>| [TOWER_QUOTA, GOVERNOR].contains(&entrant.name);
            let of_ten_million = K::entrants().into_iter().filter(is_of_them).collect();
            let field = entered(of_ten_million, limits, 10 * MILLION)?;
            self.case(&format!("{group}/10m"), &field, Traffic::Uniform(10 * MILLION), 1)?;
        }
        Ok(())
    }

    /// The same contenders asked by two threads at once; by numbers, since it is not the keys that matter there.
    fn two_threads<K: Field>(
        &mut self,
        limits: usize,
        name: &str,
        field: &Contenders<K>,
        traffic: Traffic,
    ) -> Result<(), Box<dyn Error>> {
        if K::NAME != <u64 as Keyed>::NAME {
            return Ok(());
        }
        self.case(&format!("memory/two-threads/{}/{name}", limits_of(limits)), field, traffic, 2)
    }

    fn case<K: Field>(
        &mut self,
        case: &str,
        contenders: &Contenders<K>,
        traffic: Traffic,
        threads: u64,
    ) -> Result<(), Box<dyn Error>> {
        let figures = rounds(contenders, traffic, threads, self.pace).map_err(|error| format!("{case}: {error}"))?;
        for ((name, _), figures) in contenders.iter().zip(&figures) {
            self.report.row(case, name, vec![("ns", median(&mut figures.clone()))]);
        }
        for (peer, of_case) in [(GOVERNOR, ""), (UPKEPT, "/upkept")] {
            if let Some(position) = contenders.iter().position(|(name, _)| *name == peer) {
                self.report.ratio(format!("{case}{of_case}"), median_ratio(&figures[position], &figures[0]));
            }
        }
        Ok(())
    }
}

/// All of them made, with every key counted once. tower-quota comes last, so that nothing it has counted is whole again
/// before the rounds are over.
fn entered<K: Field>(entrants: Vec<Entrant<K>>, limits: usize, keys: u32) -> Result<Contenders<K>, Box<dyn Error>> {
    let enter = |entrant: Entrant<K>| {
        let contender = (entrant.enter)(limits, keys)?;
        fill(&*contender, keys);
        Ok((entrant.name, contender))
    };
    let mut contenders: Contenders<K> = entrants.into_iter().rev().map(enter).collect::<Result<_, Box<dyn Error>>>()?;
    contenders.reverse();
    Ok(contenders)
}

const fn limits_of(limits: usize) -> &'static str {
    if limits == 1 { "1-limit" } else { "3-limits" }
}
