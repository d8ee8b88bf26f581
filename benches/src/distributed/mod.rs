//! Several processes behind one Redis: what they admit together, how long decisions take, and what they cost Redis.
//!
//! A coordinator starts a Redis and the processes of each cell. Each process offers its share of a load to a store of its
//! own. Requests have planned instants, and latencies are counted from these: a slow answer delays no later request,
//! and the delay of a request that is sent late counts.

mod cell;
mod faults;
mod latencies;
mod node;
mod offer;
mod path;
mod plan;
pub(crate) mod simulation;
mod targets;

use std::error::Error;

use tower_quota_testkit::RedisServer;

use self::latencies::Latencies;
pub(crate) use self::node::{Node, run as node};
use self::path::Contender;
use self::plan::{Plan, Traffic};
use self::targets::Targets;
use crate::report::{Report, median, median_ratio};

/// The numbers of processes, of offered loads in multiples of the quota, and the kinds of traffic.
struct Cells {
    nodes: &'static [u32],
    loads: &'static [f64],
    traffic: &'static [Traffic],
}

/// The length of a cell: windows of a second end in its middle, and are counted right on a slow machine too.
const SECONDS: f64 = 1.5;

/// The passes over all cells whose latencies are compared. In a single one, a few moments decide in which a process waits
/// for its turn. The table has the first; only exact round trips and leases take part in the others.
const PASSES: usize = 3;

const ALL: Cells = Cells {
    nodes: &[1, 2, 4, 8],
    loads: &[0.5, 1.0, 2.0, 4.0],
    traffic: &[Traffic::Even, Traffic::Zipf, Traffic::Bursts, Traffic::Hot],
};
const SOME: Cells = Cells {
    nodes: &[1, 4],
    loads: &[2.0],
    traffic: &[Traffic::Zipf, Traffic::Hot],
};

pub(crate) fn run(quick: bool) -> Result<Report, Box<dyn Error>> {
    let mut report = Report::default();
    Targets::new(quick).measure(&mut report)?;
    faults::measure(&mut report)?;
    let (cells, passes) = if quick { (&SOME, 1) } else { (&ALL, PASSES) };
    measure_cells(cells, passes, &mut report)?;
    Ok(report)
}

fn measure_cells(cells: &Cells, passes: usize, report: &mut Report) -> Result<(), Box<dyn Error>> {
    const CASE: &str = "distributed/all-cells";
    let server = RedisServer::start();
    let mut of_all: Vec<Vec<Latencies>> = Contender::ALL.iter().map(|_| Vec::new()).collect();
    for pass in 0..passes {
        for (&contender, latencies) in Contender::ALL.iter().zip(&mut of_all) {
            if pass == 0 || Contender::OURS.contains(&contender) {
                latencies.push(Latencies::new());
            }
        }
        for &traffic in cells.traffic {
            for &load in cells.loads {
                for &nodes in cells.nodes {
                    let case = format!("distributed/{}/{load}x/{nodes}", traffic.name());
                    let plan = Plan {
                        traffic,
                        load,
                        nodes,
                        node: 0,
                        seconds: SECONDS,
                    };
                    for (&contender, passes) in Contender::ALL.iter().zip(&mut of_all) {
                        let Some(latencies) = passes.get_mut(pass) else {
                            continue;
                        };
                        let figures = cell::run(&server, contender, plan, latencies)?;
                        if pass == 0 {
                            report.row(&case, contender.name(), figures);
                        }
                    }
                }
            }
        }
    }
    for (contender, passes) in Contender::ALL.iter().zip(&of_all) {
        let figures = Latencies::PERCENTILES
            .map(|(name, share)| (name, median(&mut micros_at(passes, share))));
        report.row(CASE, contender.name(), figures.to_vec());
    }
    // The contenders begin with exact round trips and leases.
    if let [exact, leased, ..] = of_all.as_slice() {
        report.ratio(
            format!("{CASE}/p99.9"),
            median_ratio(&micros_at(exact, 0.999), &micros_at(leased, 0.999)),
        );
    }
    Ok(())
}

/// Returns the microseconds that this share of the decisions took at most, in each pass.
fn micros_at(passes: &[Latencies], share: f64) -> Vec<f64> {
    passes
        .iter()
        .map(|latencies| latencies.micros_at(share))
        .collect()
}
