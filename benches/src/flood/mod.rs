//! A flood of made-up keys against a store with a cap: what it takes of the machine, and of the clients who are known.
//!
//! Half of the known clients are limited and keep asking; the others are far from their quota and ask now and then.
//! Between their requests come keys that nobody has seen before and that come once. Each scene is a process of its own.
//!
//! Of the two latencies the second leaves out the time in which the process was ready to run and others were running:
//! on a machine that does something else too, that is most of the first.

mod latencies;
mod waits;
mod worker;

use std::error::Error;

pub(crate) use self::worker::worker;
use crate::child;
use crate::report::Report;

/// How many known clients there are for each hundred places.
const CLIENTS: [u32; 4] = [10, 50, 100, 200];

/// What a worker prints, in this order.
const FIGURES: [&str; 8] =
    ["MB at the cap", "MB at most", "evicted", "limited %", "ordinary %", "forgotten %", "p99.99 us", "running us"];

/// Microseconds that p99.99 is to stay under.
const P9999: f64 = 50.0;

pub(crate) fn run(quick: bool) -> Result<Report, Box<dyn Error>> {
    let (places, flood) = if quick { (100_000, 2_000_000) } else { (1_000_000, 100_000_000) };
    let mut report = Report::default();
    for (kind, greedy) in [("flood/once", "false"), ("flood/limited", "true")] {
        // A flood of keys that are limited at once is the worst there is: one scene in the short run, all in the long.
        for per_hundred in CLIENTS.into_iter().filter(|clients| !quick || greedy == "false" || *clients == 50) {
            let clients = places / 100 * per_hundred;
            let asked = ["flood-worker", &places.to_string(), &clients.to_string(), &flood.to_string(), greedy];
            let figures = child::ask(&asked)?;
            let case = format!("{kind}/{per_hundred}-clients-per-100-places");
            report.ratio(format!("{case}/p99.99"), P9999 / figures.get(7).copied().unwrap_or(f64::INFINITY));
            report.row(&case, "tollgate", FIGURES.into_iter().zip(figures).collect());
        }
    }
    Ok(report)
}
