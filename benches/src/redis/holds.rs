//! Fixed windows, and concurrency limits with few and with many units held.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;
use tower_quota_core::{Charge, Key, Operation, Quota, Store, Timestamp};
use tower_quota_dev::RedisServer;
use tower_quota_redis::RedisStore;

use super::contenders::DEADLINE;
use super::costs_of;
use crate::Outcome;
use crate::load::{self, highest};
use crate::report::Table;
use crate::turns::in_turns;

const STREAMS: Quota = Quota::concurrent(10_000).ttl(Duration::from_secs(3_600));
const WINDOW: Quota = Quota::per_second(1_000_000).fixed_window();
/// The decisions that wait together while holds are taken and renewed.
const TOGETHER: u64 = 64;

#[derive(Clone, Copy)]
enum Work {
    Window,
    Hold,
    Renewal,
}

/// Returns a row for each kind of work. All requests count one key.
pub(super) fn table(runtime: &Runtime, rounds: usize, span: Duration) -> Outcome<Table> {
    let columns = ["decisions/s", "p50 µs", "p99 µs", "Redis µs", "service µs"];
    let mut table = Table::new("work on one key, tasks under way", &columns, rounds);
    for (name, work, held, tasks) in [
        ("fixed window, 1", Work::Window, 0, 1),
        ("fixed window, 64", Work::Window, 0, 64),
        ("hold and release, 10 held, 1", Work::Hold, 10, 1),
        ("hold and release, 10 held, 64", Work::Hold, 10, 64),
        ("hold and release, 1,000 held, 64", Work::Hold, 1_000, 64),
        ("hold and release, 10,000 held, 64", Work::Hold, 10_000, 64),
        ("renewal, 10 held, 64", Work::Renewal, 10, 64),
        ("renewal, 10,000 held, 64", Work::Renewal, 10_000, 64),
    ] {
        let server = RedisServer::start();
        let store = runtime.block_on(async {
            let options = RedisStore::options().deadline(DEADLINE);
            options.connect(&server.url()).await
        })?;
        // The tasks take the last units.
        let held = held.min(STREAMS.capacity() - TOGETHER);
        let taken: Arc<[Timestamp]> = runtime.block_on(hold(&store, held))?.into();
        let decide = Arc::new(move |draw: u64| {
            let (store, taken) = (store.clone(), Arc::clone(&taken));
            async move {
                let is_done = match work {
                    Work::Window => ask(&store, Operation::Check, &WINDOW).await.is_ok(),
                    Work::Hold => hold_and_release(&store).await.is_ok(),
                    Work::Renewal => {
                        let taken_at = taken[(draw % taken.len() as u64) as usize];
                        ask(&store, Operation::Renew { taken_at }, &STREAMS)
                            .await
                            .is_ok()
                    }
                };
                if !is_done {
                    eprintln!("no answer");
                }
            }
        });
        let only = [&server];
        let round = || Ok(runtime.block_on(load::run(&only, tasks, span, &decide)));
        let turns = in_turns(rounds, vec![Box::new(round)])?;
        let bursts = &turns[0];
        let [p50, p99, service, redis] = costs_of(bursts);
        let rate = highest(bursts, |burst| burst.rate);
        table.row(name, [rate, p50, p99, redis, service]);
    }
    Ok(table)
}

/// Applies an operation of one unit. Returns the instant of the decision.
async fn ask(store: &RedisStore, operation: Operation, quota: &Quota) -> Outcome<Timestamp> {
    let asked = store.apply(operation, &[Charge::new("limit", quota, &Key::EVERYONE)]);
    Ok(asked.await?.at())
}

pub(super) async fn hold_and_release(store: &RedisStore) -> Outcome {
    let taken_at = ask(store, Operation::Check, &STREAMS).await?;
    ask(store, Operation::Refund { taken_at }, &STREAMS).await?;
    Ok(())
}

/// Takes so many holds, and returns their instants.
async fn hold(store: &RedisStore, units: u64) -> Outcome<Vec<Timestamp>> {
    let mut taken = Vec::new();
    while (taken.len() as u64) < units {
        let together = TOGETHER.min(units - taken.len() as u64);
        let key = Key::EVERYONE;
        let charge = [Charge::new("limit", &STREAMS, &key)];
        let asked: Vec<_> = (0..together)
            .map(|_| tokio::spawn(store.check(&charge)))
            .collect();
        for asked in asked {
            taken.push(asked.await??.at());
        }
    }
    Ok(taken)
}
