//! What a planner needs: bytes on the wire and in Redis for each decision and client, ten million entries in one server,
//! and the time of a decision that needs no call.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use tower_quota_dev::RedisServer;
use tower_quota_redis::RedisStore;

use super::contenders::{
    DEADLINE, GCRA, SCRIPT, Shape, TOWER_QUOTA, connect, script_per_limit, tower_quota,
};
use super::{figures_of, runtime};
use crate::load::{self, Info};
use crate::report::{Figure, Report};
use crate::timing::per_item;
use crate::work;

const WORKERS: u64 = 64;

/// Between a number of clients and twice as many, in equal ratios. Tables of the server double once in between, at
/// another point for each contender.
const STEPS: [u64; 4] = [100_000, 118_921, 141_421, 168_179];

pub(crate) fn run(quick: bool) -> Result<Report, Box<dyn Error>> {
    let mut report = Report::default();
    in_process(quick, &mut report)?;
    runtime()?.block_on(async {
        wire(quick, &mut report).await?;
        bytes_per_client(&mut report).await?;
        many_entries(quick, &mut report).await
    })?;
    Ok(report)
}

/// Measures decisions from leases, and refusals that the cache remembers.
fn in_process(quick: bool, report: &mut Report) -> Result<(), Box<dyn Error>> {
    let rounds = if quick { 3 } else { 15 };
    for (case, mut step) in [
        ("sizing/lease", work::leased(10_000_000)?),
        ("sizing/refusal", work::refused()?),
    ] {
        let mut round = || {
            let checks = |()| (0..64).for_each(|_| step());
            per_item(64, Duration::from_millis(50), || (), checks)
        };
        round();
        let figures: Vec<f64> = (0..rounds).map(|_| round()).collect();
        report.row(case, TOWER_QUOTA, [("ns", Figure::of(&figures))]);
    }
    Ok(())
}

/// Measures the bytes that a server receives and sends for a decision, by `INFO`.
async fn wire(quick: bool, report: &mut Report) -> Result<(), Box<dyn Error>> {
    let (rounds, span) = if quick {
        (1, Duration::from_millis(500))
    } else {
        (5, Duration::from_secs(1))
    };
    for (shape, case) in [
        (Shape::One, "1-limit"),
        (Shape::Three, "3-limits"),
        (Shape::ThreeOnTwo, "3-limits-2-subjects"),
    ] {
        for tasks in [1, 64, 512] {
            let server = RedisServer::start();
            let decide = Arc::new(asking(&server, shape).await?);
            let mut figures = Vec::new();
            for _ in 0..rounds {
                figures.push(load::run(&[&server], tasks, span, &decide).await);
            }
            let case = format!("sizing/wire/{case}/{tasks}");
            report.row(&case, TOWER_QUOTA, figures_of(&figures));
        }
    }
    Ok(())
}

/// Returns a function that decides the requests of this shape on a server.
async fn asking(
    server: &RedisServer,
    shape: Shape,
) -> Result<impl Fn(u64) -> Asked + Clone + Send + Sync + 'static, Box<dyn Error>> {
    let options = RedisStore::options().deadline(DEADLINE);
    let store = options.connect(&server.url()).await?;
    Ok(move |client| -> Asked {
        let store = store.clone();
        Box::pin(async move { _ = tower_quota(&store, shape, client).await })
    })
}

type Asked = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

/// Measures the memory of three limits: one key of tower-quota, three keys of the peer, each in a server of its own.
async fn bytes_per_client(report: &mut Report) -> Result<(), Box<dyn Error>> {
    let server = RedisServer::start();
    let ours = asking(&server, Shape::Stored).await?;
    let ours = growth(&server, 1, ours).await?;
    let server = RedisServer::start();
    let (connection, sha) = connect(&server.url(), DEADLINE, GCRA).await?;
    let theirs = move |client| {
        let (mut connection, sha) = (connection.clone(), sha.clone());
        async move { _ = script_per_limit(&mut connection, &sha, Shape::Stored, client).await }
    };
    let theirs = growth(&server, 3, theirs).await?;
    report.row("sizing/bytes-per-client", TOWER_QUOTA, [("bytes", ours)]);
    report.row("sizing/bytes-per-client", SCRIPT, [("bytes", theirs)]);
    report.ratio("sizing/bytes-per-client", theirs / ours);
    Ok(())
}

/// Returns the growth of the server's memory per client: the mean over the steps. Each client sends one request.
///
/// Fails unless each client has so many keys at each step.
async fn growth<F: Future<Output = ()> + Send>(
    server: &RedisServer,
    keys: u64,
    ask: impl Fn(u64) -> F + Clone + Send + 'static,
) -> Result<f64, Box<dyn Error>> {
    // Keys that a store writes when it connects are counted until the server collects them.
    server.command("FLUSHALL")?;
    // The memory of connections and of the script belongs to no client.
    ask(0).await;
    let used = || Info::of(server).number("used_memory:");
    let (before, mut mean, mut known) = (used(), 0.0, 1);
    for count in STEPS {
        fill(known..count, ask.clone()).await?;
        known = count;
        let stored = server.command("DBSIZE")?;
        if stored.trim() != format!(":{}", count * keys) {
            let stored = stored.trim();
            return Err(
                format!("DBSIZE says {stored} after {count} clients of {keys} keys").into(),
            );
        }
        mean += (used() - before) / (count - 1) as f64 / STEPS.len() as f64;
    }
    Ok(mean)
}

/// Sends one request of each client.
async fn fill<F: Future<Output = ()> + Send>(
    clients: std::ops::Range<u64>,
    ask: impl Fn(u64) -> F + Clone + Send + 'static,
) -> Result<(), Box<dyn Error>> {
    let workers: Vec<_> = (0..WORKERS)
        .map(|worker| {
            let (ask, clients) = (ask.clone(), clients.clone());
            tokio::spawn(async move {
                for client in clients.skip(worker as usize).step_by(WORKERS as usize) {
                    ask(client).await;
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await?;
    }
    Ok(())
}

/// Measures the memory and the latency of a server with few entries and with ten million.
async fn many_entries(quick: bool, report: &mut Report) -> Result<(), Box<dyn Error>> {
    let server = RedisServer::start();
    let ask = asking(&server, Shape::Stored).await?;
    let decide = Arc::new(ask.clone());
    let rounds = if quick { 1 } else { 5 };
    let (few, many) = (10_000, if quick { 100_000 } else { 10_000_000 });
    let mut known = 0;
    for (case, entries) in [("sizing/entries/10k", few), ("sizing/entries/10m", many)] {
        fill(known..entries, ask.clone()).await?;
        known = entries;
        let megabytes = Info::of(&server).number("used_memory:") / 1e6;
        let clients = {
            let ask = Arc::clone(&decide);
            Arc::new(move |draw| ask(draw % entries))
        };
        let mut figures = Vec::new();
        for _ in 0..rounds {
            figures.push(load::run(&[&server], WORKERS, Duration::from_secs(1), &clients).await);
        }
        let mut figures = figures_of(&figures);
        figures.insert(0, ("MB", megabytes.into()));
        report.row(case, TOWER_QUOTA, figures);
    }
    Ok(())
}
