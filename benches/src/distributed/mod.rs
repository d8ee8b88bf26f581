//! One hot key over several instances with one Redis: what they admit together, next to what the quota allows.
//!
//! Each instance is a process with a store of its own, and sends its share of the load. Every contender counts windows
//! of a second. The first requests come at a whole second, so the windows that begin with it and the windows that begin
//! with a request are the same.

mod contenders;
mod decide;
#[cfg(feature = "limitador")]
mod limitador;
mod node;
mod tally;

use std::env;
use std::error::Error;
use std::process::{Command, Stdio};

use tower_quota_core::{Clock, MonotonicClock};
use tower_quota_testkit::RedisServer;

pub(crate) use self::node::{Node, run as node};
use self::tally::Tally;
use crate::load::Meters;
use crate::report::Report;

/// The units of a window of a second.
const UNITS: u32 = 4_000;

/// The numbers of instances, and the offered load in multiples of the quota.
const SCENARIOS: [(u64, u64); 3] = [(2, 2), (8, 2), (8, 4)];

const SECOND: u64 = 1_000_000;

/// The microseconds without requests at the end of the last window: a late request does not meet another window.
const PAUSE: u64 = SECOND / 4;

pub(crate) fn run(quick: bool) -> Result<Report, Box<dyn Error>> {
    let windows = if quick { 2 } else { 30 };
    let server = RedisServer::start();
    let mut report = Report::default();
    for (instances, load) in SCENARIOS {
        let case = format!("distributed/{instances}-instances/{load}x");
        for contender in contenders::ALL {
            let figures = cell(&server, contender, instances, load, windows)?;
            report.row(&case, contender, figures);
        }
    }
    Ok(report)
}

/// Returns the figures of one contender in one scenario, on an empty server.
fn cell(
    server: &RedisServer,
    contender: &str,
    instances: u64,
    load: u64,
    windows: u64,
) -> Result<Vec<(&'static str, f64)>, Box<dyn Error>> {
    server.command("FLUSHALL")?;
    let before = Meters::read(&[server]);
    let every = SECOND * instances / (u64::from(UNITS) * load);
    let requests = (SECOND * windows - PAUSE) / every;
    // The instances connect within a second.
    let begin = (MonotonicClock::new().now().as_micros() / SECOND + 2) * SECOND;
    let mut nodes = Vec::new();
    for number in 0..instances {
        let first = begin + every * number / instances;
        let mut command = Command::new(env::current_exe()?);
        command
            .args(["distributed-node", &server.url(), contender])
            .args([first, every, requests].map(|argument| argument.to_string()))
            .stdout(Stdio::piped());
        nodes.push(command.spawn()?);
    }
    let mut sum = Tally::default();
    for node in nodes {
        sum.merge(Tally::read(&node.wait_with_output()?.stdout, requests));
    }
    let after = Meters::read(&[server]);
    let asked = (requests * instances) as f64;
    let allowed = f64::from(UNITS) * windows as f64;
    let share = sum.admitted as f64 * 100.0 / allowed;
    Ok(vec![
        ("asked", asked),
        ("allowed", allowed),
        ("admitted", sum.admitted as f64),
        ("exceeded %", (share - 100.0).max(0.0)),
        ("short %", (100.0 - share).max(0.0)),
        ("failed", sum.failed as f64),
        ("p50 us", sum.micros_at(0.5)),
        ("p99 us", sum.micros_at(0.99)),
        ("calls", (after.calls - before.calls) / asked),
        (
            "redis us",
            (after.server_cpu - before.server_cpu) * 1e6 / asked,
        ),
    ])
}
