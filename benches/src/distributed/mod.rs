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
use crate::report::Report;

/// The numbers of processes, of offered loads in multiples of the quota, and the kinds of traffic.
struct Cells {
    nodes: &'static [u32],
    loads: &'static [f64],
    traffic: &'static [Traffic],
}

/// The length of a cell: windows of a second end in its middle, and are counted right on a slow machine too.
const SECONDS: f64 = 1.5;

const ALL: Cells = Cells {
    nodes: &[1, 2, 4, 8],
    loads: &[0.5, 1.0, 2.0, 4.0],
    traffic: &[Traffic::Even, Traffic::Zipf, Traffic::Bursts, Traffic::Hot],
};
const SOME: Cells = Cells { nodes: &[1, 4], loads: &[2.0], traffic: &[Traffic::Zipf, Traffic::Hot] };

pub(crate) fn run(quick: bool) -> Result<Report, Box<dyn Error>> {
    let mut report = Report::default();
    Targets::new(quick).measure(&mut report)?;
    faults::measure(&mut report)?;
    cells(if quick { &SOME } else { &ALL }, &mut report)?;
    Ok(report)
}

fn cells(cells: &Cells, report: &mut Report) -> Result<(), Box<dyn Error>> {
    let server = RedisServer::start();
    let mut latencies: Vec<_> = Contender::ALL.iter().map(|_| Latencies::new()).collect();
    for &traffic in cells.traffic {
        for &load in cells.loads {
            for &nodes in cells.nodes {
                let case = format!("distributed/{}/{load}x/{nodes}", traffic.name());
                for (&contender, latencies) in Contender::ALL.iter().zip(&mut latencies) {
                    let plan = Plan { traffic, load, nodes, node: 0, seconds: SECONDS };
                    report.row(&case, contender.name(), cell::run(&server, contender, plan, latencies)?);
                }
            }
        }
    }
    const CASE: &str = "distributed/all-cells";
    for (contender, latencies) in Contender::ALL.iter().zip(&latencies) {
        report.row(CASE, contender.name(), latencies.percentiles().to_vec());
    }
    // The contenders begin with exact round trips and leases.
    if let [exact, leased, ..] = latencies.as_slice() {
        report.ratio(format!("{CASE}/p99.9"), exact.micros_at(0.999) / leased.micros_at(0.999));
    }
    Ok(())
}
