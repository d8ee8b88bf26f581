//! `RedisStore` next to code that a service writes without it, on Redis servers over loopback.

mod contenders;
mod holds;
mod lone;
mod overload;
pub(crate) mod sizing;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tower_quota_redis::RedisStore;

pub(crate) use self::contenders::connect;
use self::contenders::{
    DEADLINE, LIMITADOR, Limiter, MIXED, ONE, QUOTAS_IN_TURN, README, RETURNING, SCRIPT, Shape,
    THREE, TOWER_QUOTA, TWO_KEYS,
};
use crate::Outcome;
use crate::load::{self, Burst, highest, lowest};
use crate::report::{Report, Table};
use crate::turns::{Round, in_turns};
use tower_quota_dev::{Fault, FaultProxy, RedisCluster, RedisServer};

fn runtime() -> std::io::Result<Runtime> {
    Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
}

/// Returns a round of load on one contender.
fn round<'a>(
    runtime: &'a Runtime,
    servers: &'a [&'a RedisServer],
    limiter: &Limiter,
    shape: &'static Shape,
    (tasks, span): (u64, Duration),
) -> Round<'a, Burst> {
    let limiter = limiter.clone();
    let decide = Arc::new(move |draw| {
        let limiter = limiter.clone();
        async move {
            if !limiter.decide(shape, draw).await {
                eprintln!("no answer");
            }
        }
    });
    Box::new(move || Ok(runtime.block_on(load::run(servers, tasks, span, &decide))))
}

pub(crate) fn run(quick: bool) -> Outcome<Report> {
    let (rounds, millis) = if quick { (2, 300) } else { (10, 1_000) };
    let runtime = runtime()?;
    let server = RedisServer::start();
    let url = server.url();
    let limiters = runtime.block_on(Limiter::all(&url))?;
    let only = [&server];
    let span = Duration::from_millis(millis);
    let bursts = |shape: &'static Shape, tasks: u64| {
        let known = limiters
            .iter()
            .filter(|(name, _)| *name != LIMITADOR || shape.is_known_to_limitador());
        let turns = known.map(|(_, limiter)| round(&runtime, &only, limiter, shape, (tasks, span)));
        in_turns(rounds, turns.collect())
    };

    let columns = [TOWER_QUOTA, SCRIPT, LIMITADOR];
    let mut rates = Table::new("decisions/s, 512 tasks", &columns, rounds).next_to(SCRIPT);
    for (name, shape) in [
        ("one limit", &ONE),
        ("three limits, one key", &THREE),
        ("three limits, two keys", &TWO_KEYS),
        ("three limits, returning clients", &RETURNING),
        ("one request in ten has a fourth limit", &MIXED),
        ("old and new quotas in turn", &QUOTAS_IN_TURN),
    ] {
        let bursts = bursts(shape, 512)?;
        rates.row(
            name,
            bursts
                .iter()
                .map(|bursts| highest(bursts, |burst| burst.rate)),
        );
    }

    let columns = ["p50 µs", "p99 µs", "service µs", "Redis µs"];
    let mut costs = Table::new("latency and CPU time", &columns, rounds);
    for (limits, shape, tasks) in [
        ("one limit", &ONE, 1),
        ("three limits", &THREE, 64),
        ("one limit", &ONE, 64),
        ("one limit", &ONE, 512),
        ("three limits", &THREE, 512),
    ] {
        for ((name, _), bursts) in limiters.iter().zip(bursts(shape, tasks)?) {
            costs.row(
                format!("{name}, {limits}, tasks: {tasks}"),
                costs_of(&bursts),
            );
        }
    }

    let columns = ["decisions/s", "p99 µs", "Redis µs"];
    let mut options = Table::new("three limits, 512 tasks", &columns, rounds);
    let mut cluster = RedisCluster::start();
    // Three primaries and nothing else, as the server they are compared with has no replica.
    (PRIMARIES..2 * PRIMARIES).for_each(|replica| cluster.kill(replica));
    let number = |number| NonZeroUsize::new(number).unwrap_or(NonZeroUsize::MIN);
    let with = || RedisStore::options().deadline(DEADLINE);
    let (paired, parted, clustered) = runtime.block_on(async {
        let urls = cluster.urls().into_iter().take(PRIMARIES);
        Ok::<_, Box<dyn std::error::Error>>((
            with().connections(number(2)).connect(&url).await?,
            with().partitions(number(64)).connect(&url).await?,
            with().cluster(urls).await?,
        ))
    })?;
    let primaries: [&RedisServer; PRIMARIES] = std::array::from_fn(|node| cluster.node(node));
    let contenders = [
        ("default", &only[..], limiters[0].1.clone()),
        ("2 connections", &only, Limiter::TowerQuota(paired)),
        ("64 partitions", &only, Limiter::TowerQuota(parted)),
        ("a cluster of 3", &primaries, Limiter::TowerQuota(clustered)),
    ];
    let turns = contenders
        .iter()
        .map(|(_, servers, limiter)| round(&runtime, servers, limiter, &THREE, (512, span)));
    for ((name, ..), bursts) in contenders.iter().zip(in_turns(rounds, turns.collect())?) {
        let [_, p99, _, server] = costs_of(&bursts);
        options.row(*name, [highest(&bursts, |burst| burst.rate), p99, server]);
    }
    let overload = runtime.block_on(overload::measure(quick))?;
    Ok(Report::of([rates, costs, options, overload]))
}

const PRIMARIES: usize = 3;

/// Returns the median latency, the 99th percentile, and the CPU time of the service and of Redis.
fn costs_of(bursts: &[Burst]) -> [Option<crate::report::Cell>; 4] {
    [
        lowest(bursts, |burst| burst.p50),
        lowest(bursts, |burst| burst.p99),
        lowest(bursts, |burst| burst.client_cpu),
        lowest(bursts, |burst| burst.server_cpu),
    ]
}

/// Measures the service of README, which counts each client and everyone, and callers with one request in flight.
pub(crate) fn readme(quick: bool) -> Outcome<Report> {
    let (rounds, millis) = if quick { (2, 300) } else { (20, 1_000) };
    let runtime = runtime()?;
    let server = RedisServer::start();
    let limiters = [
        runtime.block_on(Limiter::tower_quota(&server.url(), DEADLINE))?,
        runtime.block_on(Limiter::script(&server.url(), DEADLINE))?,
    ];
    let (only, columns) = ([&server], [TOWER_QUOTA, SCRIPT]);
    let mut rates = Table::new("decisions/s, README's service", &columns, rounds).next_to(SCRIPT);
    for tasks in [1, 64, 512] {
        let load = (tasks, Duration::from_millis(millis));
        let turns = limiters.each_ref();
        let turns = turns.map(|limiter| round(&runtime, &only, limiter, &README, load));
        let bursts = in_turns(rounds, turns.into())?;
        let best = bursts.iter().map(|all| highest(all, |burst| burst.rate));
        rates.row(format!("client and everyone, tasks: {tasks}"), best);
    }
    let span = Duration::from_millis(millis / 2);
    let [p50, redis] = lone::tables(&runtime, &server, &limiters, (rounds, span))?;
    Ok(Report::of([rates, p50, redis]))
}

/// Measures the latency by the distance of the server, whose replies arrive later.
pub(crate) fn distance(quick: bool) -> Outcome<Report> {
    let (rounds, seconds) = if quick { (1, 1) } else { (5, 2) };
    let runtime = runtime()?;
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    let ours = runtime.block_on(Limiter::tower_quota(&proxy.url(), DEADLINE))?;
    let script = runtime.block_on(Limiter::script(&proxy.url(), DEADLINE))?;
    let (only, load) = ([&server], (64, Duration::from_secs(seconds)));
    let columns = [TOWER_QUOTA, SCRIPT];
    let mut middle = Table::new("p50 ms of 64 tasks", &columns, rounds).next_to(SCRIPT);
    let mut slowest = Table::new("p99 ms of 64 tasks", &columns, rounds).next_to(SCRIPT);
    let mut calls = Table::new("decisions in a call", &columns[..1], rounds);
    for millis in [0, 1, 5, 20] {
        proxy.inflict(Fault::Delay(Duration::from_millis(millis)));
        let name = if millis == 0 {
            "loopback".to_owned()
        } else {
            format!("{millis} ms")
        };
        let contenders = [&ours, &script];
        let turns = contenders.map(|limiter| round(&runtime, &only, limiter, &ONE, load));
        let bursts = in_turns(rounds, turns.into())?;
        middle.row(
            &name,
            bursts
                .iter()
                .map(|all| lowest(all, |burst| burst.p50 / 1e3)),
        );
        slowest.row(
            &name,
            bursts
                .iter()
                .map(|all| lowest(all, |burst| burst.p99 / 1e3)),
        );
        calls.row(&name, [highest(&bursts[0], |burst| burst.of_call)]);
    }
    Ok(Report::of([middle, slowest, calls]))
}
