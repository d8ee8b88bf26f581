//! tower-quota next to its peers, measured in one run on one machine.
//!
//!     cargo run --release -p tower-quota-bench -- SUITE [--quick] [--json FILE]
//!     cargo run --release -p tower-quota-bench -- all --json-into docs/figures
//!     cargo run --release -p tower-quota-bench -- pages
//!
//! A suite returns tables, and fails beyond a bound of `floors.txt`. `pages` writes the tables of `docs/figures` into the
//! pages of `docs/measurements`. `turns` runs the contenders.

#![allow(
    clippy::float_arithmetic,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "figures, not counters"
)]

mod distributed;
mod drawings;
mod flood;
mod floors;
mod layer;
mod limiters;
mod load;
mod memory;
mod operations;
mod outage;
mod pages;
mod redis;
mod reload;
mod report;
mod rules;
mod server;
mod shed;
mod simulation;
mod traffic;
mod turns;
mod work;

use std::env;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::{Parser, Subcommand, ValueEnum};

use self::report::{Conditions, Report, load};

pub(crate) type Outcome<T = ()> = Result<T, Box<dyn Error>>;

#[derive(Parser)]
#[command(about = "tower-quota next to its peers, measured in one run")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
    /// Fewer and shorter rounds. Their figures are not published.
    #[arg(long, global = true)]
    quick: bool,
    /// Writes the figures of a suite as JSON to this file too.
    #[arg(long, global = true, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The program of Envoy, for the suite `server`. Defaults to the one that scripts/gateways installs.
    #[arg(long, global = true, value_name = "FILE")]
    envoy: Option<PathBuf>,
}

/// What to do. The hidden tasks are processes that a suite or a script starts.
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
    /// Fills the tables of the pages, and draws.
    Pages {
        /// The folder of the documents, with `figures` in it.
        #[arg(default_value = "docs")]
        docs: PathBuf,
    },
    #[command(hide = true)]
    MemoryWorker {
        contender: usize,
        key: String,
        limits: usize,
    },
    #[command(hide = true)]
    RulesWorker { size: String },
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
    /// Prints the conditions of figures as JSON, for `scripts/instructions`.
    #[command(hide = true)]
    Conditions,
}

#[derive(Subcommand, ValueEnum, Clone, Copy)]
enum Suite {
    /// The memory store and `Limiter`, next to other limiters in memory.
    Memory,
    /// The same on 1, 2 and 16 threads.
    Threads,
    /// A flood of made-up keys against a memory store with a cap.
    Flood,
    /// The layer around a service that does nothing, next to tower_governor.
    Layer,
    /// The shared store, on a Redis of its own.
    Redis,
    /// The service of README, with its counters in Redis.
    Readme,
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
    /// 10,000 blocks on two instances, and a log that the built command `tower-quota` replays.
    Operations,
    /// The built command `tower-quota-server`, next to a plain gRPC service, and behind Envoy.
    Server,
    /// The algorithms that find a limit of requests in progress, on the same simulated traces.
    Limits,
    /// A real server that is overloaded, behind `ShedLayer` and its peers.
    Shed,
}

impl Suite {
    fn run(self, quick: bool, envoy: Option<&Path>) -> Outcome<Report> {
        match self {
            Self::Memory => memory::run(quick),
            Self::Threads => memory::threads(quick),
            Self::Flood => flood::run(quick),
            Self::Layer => layer::run(quick),
            Self::Redis => redis::run(quick),
            Self::Readme => redis::readme(quick),
            Self::Distance => redis::distance(quick),
            Self::Sizing => redis::sizing::run(quick),
            Self::Distributed => distributed::run(quick),
            Self::Outage => outage::run(quick),
            Self::Simulation => simulation::run(quick),
            Self::Rules => rules::run(quick),
            Self::Reload => reload::run(quick),
            Self::Operations => operations::run(quick),
            Self::Server => server::run(quick, envoy),
            Self::Limits => shed::limits(quick),
            Self::Shed => shed::run(quick),
        }
    }
}

fn main() -> ExitCode {
    let Arguments {
        task,
        quick,
        json,
        envoy,
    } = Arguments::parse();
    // Before the suite adds a load of its own.
    let load = load();
    let outcome = match task {
        Task::Suite(suite) => suite.run(quick, envoy.as_deref()).and_then(|mut report| {
            report.publish(quick, load, json.as_deref())?;
            if quick {
                Ok(())
            } else {
                floors::check(&report)
            }
        }),
        Task::All { json_into } => all(quick, &json_into),
        Task::Pages { docs } => pages::write(&docs),
        Task::MemoryWorker {
            contender,
            key,
            limits,
        } => memory::worker(contender, &key, limits),
        Task::RulesWorker { size } => rules::worker(&size),
        Task::FloodWorker(scene) => flood::worker(&scene),
        Task::DistributedNode(node) => distributed::node(&node),
        Task::ReloadNode(node) => reload::node(&node),
        Task::Work { case, decisions } => work::run(case.as_deref(), decisions),
        Task::Time { cases } => work::time(&cases),
        Task::Conditions => serde_json::to_string(&Conditions::present(false, load))
            .map(|text| println!("{text}"))
            .map_err(Into::into),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs all suites. A process of its own starts with fresh memory.
fn all(quick: bool, folder: &Path) -> Outcome {
    if cfg!(not(feature = "limitador")) {
        eprintln!("without the feature `limitador`, the figures have no limitador over Redis");
    }
    let mut commands = Vec::new();
    for suite in Suite::value_variants() {
        let name = suite.to_possible_value().ok_or("a suite without a name")?;
        let mut command = Command::new(env::current_exe()?);
        command.arg(name.get_name()).arg("--json");
        command.arg(folder.join(name.get_name()).with_extension("json"));
        if quick {
            command.arg("--quick");
        }
        commands.push(command);
    }
    let mut command = Command::new("scripts/instructions");
    command.arg("--json").arg(folder.join("instructions.json"));
    commands.push(command);
    let mut failed = Vec::new();
    for mut command in commands {
        if !command.status()?.success() {
            failed.push(format!("{command:?} failed"));
        }
    }
    if failed.is_empty() {
        Ok(())
    } else {
        Err(failed.join("\n").into())
    }
}
