//! A caller with one request in flight and one key, next to a script that decides one limit.

use std::process::{self, Command};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::runtime::Runtime;
use tower_quota_dev::RedisServer;

use super::contenders::{
    BUCKET, FIXED_WINDOW, Limiter, SCRIPT, SLIDING_WINDOW, Shape, THREE_BUCKETS, TOWER_QUOTA,
};
use super::holds::hold_and_release;
use super::round;
use crate::Outcome;
use crate::load::{self, Burst, Info, lowest};
use crate::report::Table;
use crate::turns::{Round, in_turns};

/// The requests of a row.
#[derive(Clone, Copy)]
enum Work {
    Check(&'static Shape),
    Hold,
}

/// Returns the median latency and the CPU time of Redis. The script decides one bucket in every row.
///
/// Redis and this process have a core each. Otherwise the kernel sometimes gives them the same core for a round, in which
/// a call takes a third of the time.
pub(super) fn tables(
    runtime: &Runtime,
    server: &RedisServer,
    [ours, script]: &[Limiter; 2],
    (rounds, span): (usize, Duration),
) -> Outcome<[Table; 2]> {
    let table = |head| Table::new(head, &[TOWER_QUOTA, SCRIPT], rounds).next_to(SCRIPT);
    let mut p50 = table("p50 µs, one request in flight, one key");
    let mut redis = table("Redis µs, one request in flight, one key");
    let only = [server];
    let last = thread::available_parallelism()?.get() - 1;
    give_cores(server, ["0", &last.to_string()])?;
    for (name, work) in [
        ("one bucket", Work::Check(&BUCKET)),
        ("three buckets", Work::Check(&THREE_BUCKETS)),
        ("fixed window", Work::Check(&FIXED_WINDOW)),
        ("sliding window", Work::Check(&SLIDING_WINDOW)),
        ("hold and release", Work::Hold),
    ] {
        let turns = match work {
            Work::Check(shape) => Vec::from([
                round(runtime, &only, ours, shape, (1, span)),
                round(runtime, &only, script, &BUCKET, (1, span)),
            ]),
            Work::Hold => Vec::from([
                two_calls(runtime, &only, ours, span),
                two_calls(runtime, &only, script, span),
            ]),
        };
        let bursts = in_turns(rounds, turns)?;
        p50.row(
            name,
            bursts.iter().map(|all| lowest(all, |burst| burst.p50)),
        );
        redis.row(
            name,
            bursts
                .iter()
                .map(|all| lowest(all, |burst| burst.server_cpu)),
        );
    }
    give_cores(server, [&format!("0-{last}"); 2])?;
    Ok([p50, redis])
}

/// Lets a server and this process run on these cores only.
fn give_cores(server: &RedisServer, cores: [&str; 2]) -> Outcome {
    let processes = [
        Info::of(server).number("process_id:").to_string(),
        process::id().to_string(),
    ];
    for (process, cores) in processes.iter().zip(cores) {
        let mut taskset = Command::new("taskset");
        taskset.args(["--all-tasks", "--cpu-list", "--pid", cores, process]);
        if !taskset.output()?.status.success() {
            return Err(
                format!("taskset does not give process {process} the cores {cores}").into(),
            );
        }
    }
    Ok(())
}

/// Returns a round of requests with two calls, a hold and its release, or two decisions of the script.
fn two_calls<'a>(
    runtime: &'a Runtime,
    servers: &'a [&'a RedisServer],
    limiter: &Limiter,
    span: Duration,
) -> Round<'a, Burst> {
    let limiter = limiter.clone();
    let decide = Arc::new(move |draw| {
        let limiter = limiter.clone();
        async move {
            let is_done = if let Limiter::TowerQuota(store) = &limiter {
                hold_and_release(store).await.is_ok()
            } else {
                limiter.decide(&BUCKET, draw).await && limiter.decide(&BUCKET, draw).await
            };
            if !is_done {
                eprintln!("no answer");
            }
        }
    });
    Box::new(move || Ok(runtime.block_on(load::run(servers, 1, span, &decide))))
}
