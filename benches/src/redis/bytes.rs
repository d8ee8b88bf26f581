//! Memory that a client takes in Redis.

use std::error::Error;

use tower_quota_redis::RedisStore;
use tower_quota_testkit::RedisServer;

use super::contenders::{script_per_limit, tower_quota};
use super::setup::{DEADLINE, GCRA, connect};
use super::shape::Shape;
use super::{MULTIPLEXED, TOWER_QUOTA};
use crate::load::info;
use crate::report::Report;

const WORKERS: u64 = 64;

/// Between a number of clients and twice as many, in equal ratios: tables of the server double once in between, at
/// another point for each contender.
const STEPS: [u64; 4] = [1_000_000, 1_189_207, 1_414_214, 1_681_793];

/// Reports the memory of three limits: one key of tower-quota, three of the peer, in a server of its own for each.
pub(super) async fn measure(quick: bool, report: &mut Report) -> Result<(), Box<dyn Error>> {
    let clients = STEPS.map(|step| step * if quick { 25 } else { 100 } / 1_000);
    let ours = of_tower_quota(clients).await?;
    let theirs = of_script(clients).await?;
    for (contender, [growth, dataset]) in [(TOWER_QUOTA, ours), (MULTIPLEXED, theirs)] {
        report.row(
            "redis/bytes-per-client",
            contender,
            vec![("bytes", growth), ("data set", dataset)],
        );
    }
    report.ratio("redis/bytes-per-client", theirs[0] / ours[0]);
    Ok(())
}

async fn of_tower_quota(clients: [u64; 4]) -> Result<[f64; 2], Box<dyn Error>> {
    let server = RedisServer::start();
    let store = RedisStore::options()
        .deadline(DEADLINE)
        .connect(&server.url())
        .await?;
    per_client(&server, clients, 1, move |client| {
        let store = store.clone();
        async move { tower_quota(&store, Shape::Stored, client).await }
    })
    .await
}

async fn of_script(clients: [u64; 4]) -> Result<[f64; 2], Box<dyn Error>> {
    let server = RedisServer::start();
    let (connection, sha) = connect(&server.url(), DEADLINE, GCRA).await?;
    per_client(&server, clients, 3, move |client| {
        let (mut connection, sha) = (connection.clone(), sha.clone());
        async move { script_per_limit(&mut connection, &sha, Shape::Stored, client).await }
    })
    .await
}

/// Returns the growth of the server's memory per client, all in all and of the data set alone: the mean over the steps.
/// Each client asks once.
///
/// Fails unless each client has so many keys at each step.
async fn per_client<F: Future<Output = bool> + Send>(
    server: &RedisServer,
    clients: [u64; 4],
    keys: u64,
    ask: impl Fn(u64) -> F + Clone + Send + 'static,
) -> Result<[f64; 2], Box<dyn Error>> {
    // Keys that a store writes when it connects are counted until the server collects them.
    server.command("FLUSHALL")?;
    // What connections and the script take is there before.
    ask(0).await;
    let used =
        || ["used_memory:", "used_memory_dataset:"].map(|field| info(server, "memory", field));
    let before = used();
    let (mut mean, mut known) = ([0.0; 2], 1);
    for count in clients {
        let workers: Vec<_> = (0..WORKERS)
            .map(|worker| {
                let ask = ask.clone();
                tokio::spawn(async move {
                    for client in (known + worker..count).step_by(WORKERS as usize) {
                        ask(client).await;
                    }
                })
            })
            .collect();
        for worker in workers {
            worker.await?;
        }
        known = count;
        let (after, stored) = (used(), server.command("DBSIZE")?);
        if stored.trim() != format!(":{}", count * keys) {
            return Err(format!(
                "DBSIZE says {} after {count} clients, of {keys} keys each",
                stored.trim()
            )
            .into());
        }
        for (mean, (after, before)) in mean.iter_mut().zip(after.into_iter().zip(before)) {
            *mean += (after - before) / (count - 1) as f64 / clients.len() as f64;
        }
    }
    Ok(mean)
}
