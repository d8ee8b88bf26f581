//! tower-quota beside its peers, measured in one run on one machine.
//!
//!     cargo run --release -p tower-quota-bench -- redis [--quick] [--json FILE]
//!     cargo run --release -p tower-quota-bench -- distance [--quick] [--json FILE]
//!     cargo run --release -p tower-quota-bench -- memory [--quick] [--json FILE]
//!     cargo run --release -p tower-quota-bench -- limiter [--quick] [--json FILE]
//!     cargo run --release -p tower-quota-bench -- layer [--quick] [--json FILE]
//!     cargo run --release -p tower-quota-bench -- rules [--quick] [--json FILE]
//!     cargo run --release -p tower-quota-bench -- flood [--quick] [--json FILE]
//!     cargo run --release -p tower-quota-bench -- distributed [--quick] [--json FILE]
//!     cargo run --release -p tower-quota-bench -- simulation [--quick] [--json FILE]
//!     cargo run --release -p tower-quota-bench -- reload [--quick] [--json FILE]
//!     cargo run --release -p tower-quota-bench -- soak [--quick]
//!     cargo run --release -p tower-quota-bench -- chart [FILE.json...] [--into docs]
//!     cargo run --release -p tower-quota-bench -- before-after [docs/figures]
//!
//! Contenders run in interleaved rounds, so that a machine that slows down slows all of them; figures are medians over
//! the rounds, ratios are medians of each round's ratio. `ratio CASE VALUE` is the peer divided by tower-quota for costs
//! and latencies, tower-quota divided by the peer for rates: above 1 is better for tower-quota.

#![allow(
    clippy::float_arithmetic,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "figures, not counters"
)]

mod beyond;
mod chart;
mod child;
mod conditions;
mod distributed;
mod flood;
mod layer;
mod load;
mod memory;
#[cfg(feature = "metrics")]
mod metrics;
mod outage;
mod redis;
mod reload;
mod report;
mod rules;
mod simulation;
mod soak;
mod timing;
mod traffic;
mod wanted;
mod work;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "tower-quota beside its peers, measured in one run")]
struct Arguments {
    #[command(subcommand)]
    suite: Suite,
    /// Short rounds: a minute or two in all, and noisier.
    #[arg(long, global = true)]
    quick: bool,
    /// Writes the figures as JSON to this file too.
    #[arg(long, global = true, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Suite {
    /// The shared store, on a Redis of its own.
    Redis,
    /// The latency of the shared store by the distance of Redis.
    Distance,
    /// The memory store, beside other limiters in memory.
    Memory,
    /// `Limiter` without HTTP, beside the peers' direct interfaces.
    Limiter,
    /// The memory that one of them takes, in a process of its own.
    #[command(hide = true)]
    MemoryWorker {
        contender: String,
        key: String,
        limits: usize,
        keys: u32,
    },
    /// The layer around a service that does nothing, beside tower_governor, and over HTTP under wrk.
    Layer,
    /// Rules documents: requests behind many rules, loading, memory.
    Rules,
    /// The loading of one, in a process of its own.
    #[command(hide = true)]
    RulesWorker { size: String, format: String },
    /// A flood of made-up keys against a memory store with a cap.
    Flood,
    /// One scene of it.
    #[command(hide = true)]
    FloodWorker(flood::Scene),
    /// One hot key over several instances with one Redis, beside peers.
    Distributed,
    /// One of those instances.
    #[command(hide = true)]
    DistributedNode(distributed::Node),
    /// A fleet of 200 instances with ten million clients, in virtual time.
    Simulation,
    /// Rules that change once a second under load, in twenty processes.
    Reload,
    /// An outage of Redis, in which a thousand clients at their limit go on sending.
    Outage,
    /// One of those processes.
    #[command(hide = true)]
    ReloadNode(reload::Node),
    /// A fixed number of decisions, for `scripts/instructions` to count; without a case, the names of all.
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
    /// Draws the algorithms and the charts of `--json` files, and fills the tables of the documents.
    Chart {
        /// The files that `--json` has written, one per suite, and that of `scripts/instructions`.
        files: Vec<PathBuf>,
        /// The folder of the documents, with `charts` and `figures` in it.
        #[arg(long, default_value = "docs")]
        into: PathBuf,
    },
    /// Prints tables of real traffic: the figures of an earlier tree, in the folder `before`, beside those of today.
    BeforeAfter {
        /// The folder of the figures.
        #[arg(default_value = "docs/figures")]
        figures: PathBuf,
    },
    /// Eight processes with skewed clocks behind one Redis: never more than the quota, for any key.
    Soak,
    /// One of those processes.
    #[command(hide = true)]
    SoakWorker {
        url: String,
        number: u64,
        seconds: u64,
    },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let report = match arguments.suite {
        Suite::Redis => redis::run(arguments.quick),
        Suite::Distance => redis::distance::run(arguments.quick),
        Suite::Memory => memory::run(arguments.quick),
        Suite::Limiter => memory::limiter::run(arguments.quick),
        Suite::MemoryWorker {
            contender,
            key,
            limits,
            keys,
        } => {
            return done(memory::worker(&contender, &key, limits, keys));
        }
        Suite::Layer => layer::run(arguments.quick),
        Suite::Rules => rules::run(arguments.quick),
        Suite::RulesWorker { size, format } => return done(rules::worker(&size, &format)),
        Suite::Flood => flood::run(arguments.quick),
        Suite::FloodWorker(scene) => return done(flood::worker(&scene)),
        Suite::Distributed => distributed::run(arguments.quick),
        Suite::Outage => outage::run(arguments.quick),
        Suite::Simulation => simulation::run(arguments.quick),
        Suite::DistributedNode(node) => return done(distributed::node(&node)),
        Suite::Reload => reload::run(arguments.quick),
        Suite::ReloadNode(node) => return done(reload::node(&node)),
        Suite::Conditions => return done(conditions::print()),
        Suite::Chart { files, into } => return done(chart::run(&files, &into)),
        Suite::BeforeAfter { figures } => return done(chart::print_before_after(&figures)),
        Suite::Work { case, decisions } => return done(work::run(case.as_deref(), decisions)),
        Suite::Time { cases } => return done(work::time(&cases)),
        #[cfg(feature = "metrics")]
        Suite::Scrape => return done(metrics::scrape()),
        Suite::Soak => soak::run(arguments.quick),
        Suite::SoakWorker {
            url,
            number,
            seconds,
        } => return done(soak::worker(&url, number, seconds)),
    };
    done(report.and_then(|report| report.publish(arguments.quick, arguments.json.as_deref())))
}

fn done(outcome: Result<(), Box<dyn Error>>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
