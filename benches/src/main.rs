//! tower-quota next to its peers, measured in one run on one machine.
//!
//!     cargo run --release -p tower-quota-bench -- SUITE [--quick] [--json FILE]
//!     cargo run --release -p tower-quota-bench -- all --json-into docs/figures
//!     cargo run --release -p tower-quota-bench -- chart
//!
//! Contenders run in interleaved rounds, so that a machine that slows down slows all of them. Figures are medians over the
//! rounds, ratios are medians of the ratio of each round. `ratio CASE VALUE` is the peer divided by tower-quota for costs
//! and latencies, tower-quota divided by the peer for rates. Above 1 is better for tower-quota.

#![allow(
    clippy::float_arithmetic,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "figures, not counters"
)]

mod chart;
mod distributed;
mod flood;
mod layer;
mod load;
mod memory;
mod outage;
mod redis;
mod reload;
mod report;
mod rules;
mod simulation;
mod targets;
mod timing;
mod traffic;
mod work;

use std::env;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::{Parser, Subcommand};

use self::report::Report;
use self::timing::now;

#[derive(Parser)]
#[command(about = "tower-quota next to its peers, measured in one run")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
    /// Short rounds, which are noisier. Their figures are not published.
    #[arg(long, global = true)]
    quick: bool,
    /// Writes the figures of a suite as JSON to this file too.
    #[arg(long, global = true, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Task {
    #[command(flatten)]
    Suite(Suite),
    /// All suites, each in a process of its own, and `scripts/instructions`.
    All {
        /// The folder of the figures.
        #[arg(long, value_name = "FOLDER")]
        json_into: PathBuf,
    },
    /// Draws the charts, and fills the tables of the documents.
    Chart {
        /// The folder of the documents, with `charts` and `figures` in it.
        #[arg(default_value = "docs")]
        docs: PathBuf,
    },
    #[command(flatten)]
    Part(Part),
}

#[derive(Subcommand, Clone, Copy)]
enum Suite {
    /// The memory store and `Limiter`, next to other limiters in memory.
    Memory,
    /// The same on 1 to 16 threads.
    Threads,
    /// A flood of made-up keys against a memory store with a cap.
    Flood,
    /// The layer around a service that does nothing, next to tower_governor, and over HTTP under wrk.
    Layer,
    /// The shared store, on a Redis of its own.
    Redis,
    /// The latency of the shared store by the distance of Redis.
    Distance,
    /// Bytes on the wire and in Redis, ten million entries, and decisions without a call.
    Sizing,
    /// One hot key over several instances with one Redis, next to peers.
    Distributed,
    /// An outage of Redis, in which a thousand clients at their limit go on sending.
    Outage,
    /// A fleet of 200 instances with ten million clients, in virtual time.
    Simulation,
    /// Rules documents: requests behind many rules, loading, memory.
    Rules,
    /// Rules that change once a second under load, in twenty processes.
    Reload,
}

/// The suites in the order in which `all` runs them.
const SUITES: [&str; 12] = [
    "memory",
    "threads",
    "flood",
    "layer",
    "redis",
    "distance",
    "sizing",
    "distributed",
    "outage",
    "simulation",
    "rules",
    "reload",
];

/// A process that a suite or a script starts.
#[derive(Subcommand)]
enum Part {
    #[command(hide = true)]
    MemoryWorker {
        contender: String,
        key: String,
        limits: usize,
    },
    #[command(hide = true)]
    RulesWorker { size: String, format: String },
    #[command(hide = true)]
    FloodWorker(flood::Scene),
    #[command(hide = true)]
    DistributedNode(distributed::Node),
    #[command(hide = true)]
    ReloadNode(reload::Node),
    /// A fixed number of decisions, for `scripts/instructions` to count. Without a case, the names of all.
    #[command(hide = true)]
    Work {
        case: Option<String>,
        #[arg(default_value_t = 0)]
        decisions: u32,
    },
    /// Prints the nanoseconds of a decision in each of these cases, for `scripts/metrics-overhead`.
    #[command(hide = true)]
    Time { cases: Vec<String> },
    /// Prints the time of a scrape with 10,000 limits on 100 routes.
    #[cfg(feature = "metrics")]
    Scrape,
    /// Prints the conditions of figures as JSON, for `scripts/instructions`.
    #[command(hide = true)]
    Conditions,
}

impl Suite {
    fn run(self, quick: bool) -> Result<Report, Box<dyn Error>> {
        match self {
            Self::Memory => memory::run(quick),
            Self::Threads => memory::threads(quick),
            Self::Flood => flood::run(quick),
            Self::Layer => layer::run(quick),
            Self::Redis => redis::run(quick),
            Self::Distance => redis::distance(quick),
            Self::Sizing => redis::sizing::run(quick),
            Self::Distributed => distributed::run(quick),
            Self::Outage => outage::run(quick),
            Self::Simulation => simulation::run(quick),
            Self::Rules => rules::run(quick),
            Self::Reload => reload::run(quick),
        }
    }
}

impl Part {
    fn run(self) -> Result<(), Box<dyn Error>> {
        match self {
            Self::MemoryWorker {
                contender,
                key,
                limits,
            } => memory::worker(&contender, &key, limits),
            Self::RulesWorker { size, format } => rules::worker(&size, &format),
            Self::FloodWorker(scene) => flood::worker(&scene),
            Self::DistributedNode(node) => distributed::node(&node),
            Self::ReloadNode(node) => reload::node(&node),
            Self::Work { case, decisions } => work::run(case.as_deref(), decisions),
            Self::Time { cases } => work::time(&cases),
            #[cfg(feature = "metrics")]
            Self::Scrape => work::scrape(),
            Self::Conditions => report::print_conditions(),
        }
    }
}

fn main() -> ExitCode {
    let Arguments { task, quick, json } = Arguments::parse();
    // Before the suite adds a load of its own.
    let load = report::load();
    let outcome = match task {
        Task::Suite(suite) => suite
            .run(quick)
            .and_then(|report| report.publish(quick, load, json.as_deref())),
        Task::All { json_into } => all(quick, &json_into),
        Task::Chart { docs } => chart::run(&docs),
        Task::Part(part) => part.run(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs all suites, and says how long each took. A process of its own starts with fresh memory.
fn all(quick: bool, folder: &Path) -> Result<(), Box<dyn Error>> {
    if cfg!(not(feature = "limitador")) {
        eprintln!("without the feature `limitador`, the figures have no limitador over Redis");
    }
    let mut spent = Vec::new();
    let mut run = |name: &str, command: &mut Command| {
        let began = now();
        let status = command
            .status()
            .map_err(|error| format!("{name}: {error}"))?;
        spent.push(format!("{name} {} s", (now() - began).as_secs()));
        if status.success() {
            Ok(())
        } else {
            Err(format!("{name}: {status}"))
        }
    };
    let mut outcome = Ok(());
    for suite in SUITES {
        let mut command = Command::new(env::current_exe()?);
        command.arg(suite).arg("--json");
        command.arg(folder.join(suite).with_extension("json"));
        if quick {
            command.arg("--quick");
        }
        outcome = outcome.and(run(suite, &mut command));
    }
    if !quick {
        let mut command = Command::new("scripts/instructions");
        command.arg("--json").arg(folder.join("instructions.json"));
        outcome = outcome.and(run("instructions", &mut command));
    }
    println!("\n{}", spent.join("\n"));
    Ok(outcome?)
}
