//! A flood of made-up keys against a store with a cap: its cost in memory and time, and to the clients who are known.
//!
//! Half of the known clients are limited and keep asking; the others are far from their quota and ask now and then.
//! Between their requests come new keys, each of them once. Each scene is a process of its own,
//! and reports whenever the flood has grown to one of several multiples of the places.
//!
//! Of the two latencies the second leaves out the time in which the process was ready to run and others were running:
//! on a machine that does something else too, that is most of the first. A thread that was not scheduled finds its
//! caches cold afterwards; so that this is rare, scenes run at a high priority where the system permits it.

mod client;
mod latencies;
mod stage;
mod waits;
mod worker;

use std::error::Error;

use self::stage::FIGURES;
pub(crate) use self::worker::{Scene, worker};
use crate::child;
use crate::report::Report;

/// Known clients for each hundred places, the most important number first.
const CLIENTS: [u64; 4] = [50, 10, 100, 200];

/// The keys of a flood, in multiples of the places, at which a scene reports.
const MULTIPLES: [u64; 4] = [1, 5, 20, 100];

/// Microseconds that p99.99 should stay under.
const P9999: f64 = 50.0;

pub(crate) fn run(quick: bool) -> Result<Report, Box<dyn Error>> {
    // The full flood for the first number of clients. The others get its beginning, where most changes.
    let (places, beginning) = if quick { (100_000, 5) } else { (1_000_000, 20) };
    let mut report = Report::default();
    for (kind, greedy) in [("flood/once", "false"), ("flood/limited", "true")] {
        for (number, per_hundred) in CLIENTS.into_iter().enumerate() {
            let multiple = if number == 0 {
                MULTIPLES[MULTIPLES.len() - 1]
            } else {
                beginning
            };
            let clients = places / 100 * per_hundred;
            let asked = [
                "flood-worker",
                &places.to_string(),
                &clients.to_string(),
                &(multiple * places).to_string(),
                greedy,
            ];
            let figures = child::ask_first(&asked)?;
            let case = format!("{kind}/{per_hundred}-clients-per-100-places");
            let stages = figures.chunks_exact(FIGURES.len());
            for (multiple, figures) in MULTIPLES.iter().zip(stages.clone()) {
                let figures = FIGURES.into_iter().zip(figures.iter().copied()).collect();
                report.row(&format!("{case}/{multiple}x"), "tower-quota", figures);
            }
            let last = stages
                .last()
                .and_then(|figures| figures.last())
                .ok_or("a scene without figures")?;
            report.ratio(format!("{case}/p99.99"), P9999 / last);
        }
    }
    Ok(report)
}
