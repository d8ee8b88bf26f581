//! Memory that a client takes in Redis.

use std::error::Error;
use std::sync::Arc;

use super::contenders::{script_per_limit, tower_quota};
use super::setup::Setup;
use super::shape::Shape;
use super::{MULTIPLEXED, TOWER_QUOTA};
use crate::load::info;
use crate::report::Report;

/// Reports the memory of three limits: one key of tower-quota, three of the peer, in an empty server.
pub(super) async fn measure(setup: &Arc<Setup>, quick: bool, report: &mut Report) -> Result<(), Box<dyn Error>> {
    let clients = if quick { 25_000 } else { 100_000 };
    let ours = per_client(setup, true, clients).await?;
    let theirs = per_client(setup, false, clients).await?;
    for (contender, [growth, dataset]) in [(TOWER_QUOTA, ours), (MULTIPLEXED, theirs)] {
        report.row("redis/bytes-per-client", contender, vec![("bytes", growth), ("data set", dataset)]);
    }
    report.ratio("redis/bytes-per-client", theirs[0] / ours[0]);
    Ok(())
}

/// Returns the growth of the server's memory per client, all in all and of the data set alone. Each client asks once.
async fn per_client(setup: &Arc<Setup>, is_ours: bool, clients: u64) -> Result<[f64; 2], Box<dyn Error>> {
    const WORKERS: u64 = 64;
    let server = &setup.server;
    server.command("FLUSHALL")?;
    let used = || ["used_memory:", "used_memory_dataset:"].map(|field| info(server, "memory", field));
    let before = used();
    let workers: Vec<_> = (0..WORKERS)
        .map(|worker| {
            let setup = Arc::clone(setup);
            tokio::spawn(async move {
                for client in (worker..clients).step_by(WORKERS as usize) {
                    if is_ours {
                        tower_quota(&setup.store, Shape::Lasting, client).await;
                    } else {
                        script_per_limit(&mut setup.connection.clone(), &setup.sha, Shape::Lasting, client).await;
                    }
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await?;
    }
    let after = used();
    Ok([0, 1].map(|kind| (after[kind] - before[kind]) / clients as f64))
}
