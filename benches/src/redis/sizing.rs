//! What a planner needs: bytes on the wire and in Redis for each decision and client, ten million entries in one server,
//! windows and holds, and the time of a decision that needs no call.

use std::time::Duration;

use super::contenders::{
    DEADLINE, FEW, Limiter, ONE, SCRIPT, STORED, Shape, THREE, TOWER_QUOTA, TWO_KEYS,
};
use super::{costs_of, holds, round, runtime};
use crate::Outcome;
use crate::load::{Info, highest, lowest};
use crate::report::{Cell, Report, Table};
use crate::turns::{in_turns, steps};
use crate::work;
use tower_quota_dev::RedisServer;

const WORKERS: u64 = 64;

/// Between a number of clients and twice as many, in equal ratios. Tables of the server double once in between, at
/// another point for each contender.
const STEPS: [u64; 4] = [100_000, 118_921, 141_421, 168_179];

pub(crate) fn run(quick: bool) -> Outcome<Report> {
    let rounds = if quick { 1 } else { 5 };
    let span = Duration::from_millis(if quick { 500 } else { 1_000 });
    let runtime = runtime()?;
    let connected =
        |server: &RedisServer| runtime.block_on(Limiter::tower_quota(&server.url(), DEADLINE));

    let columns = [
        "bytes to Redis",
        "bytes from Redis",
        "decisions a call",
        "Redis µs",
        "service µs",
    ];
    let mut wire = Table::new("limits, tasks under way", &columns, rounds);
    for (name, shape, tasks) in [
        ("one limit, 1", &ONE, 1),
        ("one limit, 64", &ONE, 64),
        ("one limit, 512", &ONE, 512),
        ("three, one key, 1", &THREE, 1),
        ("three, one key, 512", &THREE, 512),
        ("three, two keys, 512", &TWO_KEYS, 512),
    ] {
        let server = RedisServer::start();
        let (ours, only) = (connected(&server)?, [&server]);
        let turns = vec![round(&runtime, &only, &ours, shape, (tasks, span))];
        let bursts = &in_turns(rounds, turns)?[0];
        let [_, _, client, redis] = costs_of(bursts);
        let cells = [
            lowest(bursts, |burst| burst.bytes_in),
            lowest(bursts, |burst| burst.bytes_out),
            highest(bursts, |burst| burst.of_call),
            redis,
            client,
        ];
        wire.row(name, cells);
    }

    let count = if quick { 20 } else { 100 };
    let mut without = Table::new("ns without a call to Redis", &[TOWER_QUOTA], count);
    let contenders = vec![
        steps(2_000, work::leased(10_000_000)?),
        steps(2_000, work::refused()?),
    ];
    let figures = in_turns(count, contenders)?;
    without.row("admitted from a lease", [Cell::lowest(&figures[0])]);
    without.row("refused from memory", [Cell::lowest(&figures[1])]);

    // One key of tower-quota, three keys of the peer, each in a server of its own.
    let mut bytes =
        Table::new("bytes of a client in Redis", &[TOWER_QUOTA, SCRIPT], 1).next_to(SCRIPT);
    let server = RedisServer::start();
    let ours = connected(&server)?;
    let ours = runtime.block_on(growth(&server, 1, ours))?;
    let server = RedisServer::start();
    let script = runtime.block_on(Limiter::script(&server.url(), DEADLINE))?;
    let theirs = runtime.block_on(growth(&server, 3, script))?;
    bytes.row("three limits", [Some(ours.into()), Some(theirs.into())]);

    let columns = ["MB", "decisions/s", "p50 µs", "p99 µs"];
    let mut entries = Table::new("three limits, 64 tasks", &columns, rounds);
    let server = RedisServer::start();
    let (ours, only) = (connected(&server)?, [&server]);
    let many = if quick { 100_000 } else { 10_000_000 };
    for (name, shape, clients) in [
        ("10,000 clients", &FEW, 10_000),
        ("ten million clients", &STORED, many),
    ] {
        runtime.block_on(fill(0..clients, &ours, shape))?;
        let megabytes = Info::of(&server).number("used_memory:") / 1e6;
        let turns = vec![round(&runtime, &only, &ours, shape, (WORKERS, span))];
        let bursts = &in_turns(rounds, turns)?[0];
        let [p50, p99, ..] = costs_of(bursts);
        let rate = highest(bursts, |burst| burst.rate);
        entries.row(name, [Some(megabytes.into()), rate, p50, p99]);
    }
    let work = holds::table(&runtime, rounds, span)?;
    Ok(Report::of([wire, without, bytes, entries, work]))
}

/// Returns the growth of the server's memory per client: the mean over the steps. Each client sends one request.
///
/// Fails unless each client has so many keys at each step.
async fn growth(server: &RedisServer, keys: u64, limiter: Limiter) -> Outcome<f64> {
    // Keys that a store writes when it connects are counted until the server collects them.
    server.command("FLUSHALL")?;
    // The memory of connections and of the script belongs to no client.
    limiter.decide(&STORED, 0).await;
    let used = || Info::of(server).number("used_memory:");
    let (before, mut mean, mut known) = (used(), 0.0, 1);
    for count in STEPS {
        fill(known..count, &limiter, &STORED).await?;
        known = count;
        let stored = server.command("DBSIZE")?;
        if stored.trim() != format!(":{}", count * keys) {
            let stored = stored.trim();
            let expected = format!("{count} clients of {keys} keys");
            return Err(format!("DBSIZE says {stored} after {expected}").into());
        }
        mean += (used() - before) / (count - 1) as f64 / STEPS.len() as f64;
    }
    Ok(mean)
}

/// Sends one request of each client.
async fn fill(clients: std::ops::Range<u64>, limiter: &Limiter, shape: &'static Shape) -> Outcome {
    let workers: Vec<_> = (0..WORKERS)
        .map(|worker| {
            let (limiter, clients) = (limiter.clone(), clients.clone());
            tokio::spawn(async move {
                for client in clients.skip(worker as usize).step_by(WORKERS as usize) {
                    limiter.decide(shape, client).await;
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await?;
    }
    Ok(())
}
