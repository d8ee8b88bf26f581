//! Measures how many clients a moving slot stops, and for how long.
//!
//! This prints the table of `docs/measurements/sizing.md`:
//!
//! ```text
//! cargo test -p tower-quota-redis --test deciding -- --ignored --nocapture reshard
//! ```

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use tower_quota_core::{Charge, Quota, Store};
use tower_quota_dev::RedisCluster;
use tower_quota_redis::RedisStore;

use crate::common::{look_at, options, user};

const CLIENTS: usize = 240_000;
const TASKS: usize = 256;
/// The keys per step of `redis-cli --cluster reshard`.
const KEYS_A_STEP: usize = 10;
/// A quota with a period longer than the run, so that no entry expires.
const YEAR: Quota = Quota::new(10, Duration::from_secs(365 * 86_400)).fixed_window();

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes and prints a table"]
async fn reshard_stops_clients_of_one_slot() {
    println!("| partitions | clients in a slot | seconds to move the slot | decisions in a call |");
    println!("|---|---|---|---|");
    for partitions in [12, 24, 48, 96] {
        let cluster = RedisCluster::start();
        let partitions = NonZeroUsize::new(partitions).unwrap();
        let options = options().partitions(partitions);
        let store = options.cluster(cluster.urls()).await.unwrap();
        visit_all(&store).await;
        let stats = store.stats();
        let slot = cluster.slot(&store.key_of(&user("client 1")));
        let owner = cluster.owner(slot).unwrap();
        let counted = redis::cmd("CLUSTER")
            .arg("COUNTKEYSINSLOT")
            .arg(slot)
            .query(&mut look_at(cluster.node(owner)));
        let clients: usize = counted.unwrap();
        assert!(clients > CLIENTS / partitions / 2);
        let mut seconds = Vec::new();
        for step in 1..=3 {
            cluster.settle();
            let took =
                tokio::task::block_in_place(|| time_move(&cluster, slot, (owner + step) % 3));
            seconds.push(format!("{:.2}", took.as_secs_f64()));
        }
        let calls = stats.decisions / stats.calls;
        println!(
            "| {partitions} | {clients} | {} | {calls} |",
            seconds.join(", ")
        );
    }
}

/// Decides about each client once.
async fn visit_all(store: &RedisStore) {
    let mut tasks = Vec::new();
    for first in 0..TASKS {
        let store = store.clone();
        tasks.push(tokio::spawn(async move {
            for client in (first..CLIENTS).step_by(TASKS) {
                let client = user(&format!("client {client}"));
                let charge = Charge::new("year", &YEAR, &client);
                assert!(store.check(&[charge]).await.unwrap().is_allowed());
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
}

#[expect(clippy::disallowed_methods, reason = "measures real time")]
fn time_move(cluster: &RedisCluster, slot: u16, to: usize) -> Duration {
    let began = Instant::now();
    let moving = cluster.begin_move(slot, to).unwrap();
    loop {
        let keys = moving.keys_left(KEYS_A_STEP).unwrap();
        if keys.is_empty() {
            break;
        }
        moving.carry(&keys).unwrap();
    }
    moving.end();
    began.elapsed()
}
