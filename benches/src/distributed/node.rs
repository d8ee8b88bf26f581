//! One process of a cell.

use std::error::Error;
use std::fs;
use std::io;
use std::time::Duration;

use clap::Args;
use tokio::runtime::Runtime;
use tower_quota_lease::Leased;
use tower_quota_redis::RedisStore;

use super::offer::offer;
#[cfg(feature = "limitador")]
use super::path::Limitador;
use super::path::{Contender, Path, StorePath, Trypema, WindowScript};
use super::plan::Plan;

/// The arguments of a process.
#[derive(Args, Debug)]
pub(crate) struct Node {
    url: String,
    contender: Contender,
    #[command(flatten)]
    plan: Plan,
    /// The deadline of a call, in milliseconds.
    deadline: u64,
    /// Writes a `+` for each admitted request at once.
    #[arg(long)]
    loud: bool,
}

/// Connects, waits for a line of input, runs the plan, and prints the tally as JSON.
pub(crate) fn run(node: &Node) -> Result<(), Box<dyn Error>> {
    // The system may end a sleep 50 us late to save power. Where it does not permit less, it stays so.
    let _ = fs::write("/proc/self/timerslack_ns", "1000");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let Node { url, plan, .. } = node;
    let (quota, rate, clients) = (
        plan.traffic.quota(),
        plan.traffic.rate(),
        plan.traffic.clients(),
    );
    let deadline = Duration::from_millis(node.deadline);
    let redis = || RedisStore::options().deadline(deadline).connect(url);
    match node.contender {
        Contender::Exact => work(
            &runtime,
            StorePath::new(runtime.block_on(redis())?, quota),
            node,
        ),
        Contender::Leased => {
            let _entered = runtime.enter();
            let store = Leased::new(runtime.block_on(redis())?);
            work(
                &runtime,
                StorePath::new(store, quota).counting_lost(|store| store.stats().units_lost),
                node,
            )
        }
        Contender::Trypema => work(
            &runtime,
            runtime.block_on(Trypema::connect(url, clients, rate))?,
            node,
        ),
        #[cfg(feature = "limitador")]
        Contender::Limitador => work(
            &runtime,
            runtime.block_on(Limitador::connect(url, rate))?,
            node,
        ),
        Contender::Script => work(
            &runtime,
            runtime.block_on(WindowScript::connect(url, rate, deadline))?,
            node,
        ),
    }
}

fn work(runtime: &Runtime, path: impl Path, node: &Node) -> Result<(), Box<dyn Error>> {
    println!("ready");
    io::stdin().read_line(&mut String::new())?;
    let tally = offer(runtime, &path, &node.plan, node.loud);
    println!("{}", serde_json::to_string(&tally)?);
    Ok(())
}
