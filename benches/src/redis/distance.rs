//! Latency by the distance of the server: its replies arrive later.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use tower_quota_redis::RedisStore;
use tower_quota_testkit::{Fault, FaultProxy, RedisServer};

use super::contenders::{script_per_limit, tower_quota};
use super::setup::{DEADLINE, GCRA, connect};
use super::shape::Shape;
use super::{MULTIPLEXED, TOWER_QUOTA, runtime};
use crate::load::{self, Round};
use crate::report::Report;

const TASKS: u64 = 64;

pub(crate) fn run(quick: bool) -> Result<Report, Box<dyn Error>> {
    runtime()?.block_on(measure(quick))
}

async fn measure(quick: bool) -> Result<Report, Box<dyn Error>> {
    let mut report = Report::default();
    let span = Duration::from_secs(if quick { 1 } else { 5 });
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    let store = RedisStore::options()
        .deadline(DEADLINE)
        .connect(&proxy.url())
        .await?;
    let (connection, sha) = connect(&proxy.url(), DEADLINE, GCRA).await?;
    for millis in [0, 1, 5, 20] {
        proxy.inflict(Fault::Delay(Duration::from_millis(millis)));
        let case = format!("distance/{millis}-ms");
        let store = store.clone();
        let ours = move |draw| {
            let store = store.clone();
            async move {
                let _ = tower_quota(&store, Shape::One, draw).await;
            }
        };
        let round = load::run(&[&server], TASKS, span, &Arc::new(ours)).await;
        report.row(&case, TOWER_QUOTA, figures(&round));
        let (connection, sha) = (connection.clone(), Arc::<str>::from(sha.as_str()));
        let theirs = move |draw| {
            let (mut connection, sha) = (connection.clone(), Arc::clone(&sha));
            async move {
                let _ = script_per_limit(&mut connection, &sha, Shape::One, draw).await;
            }
        };
        let round = load::run(&[&server], TASKS, span, &Arc::new(theirs)).await;
        report.row(&case, MULTIPLEXED, figures(&round));
    }
    Ok(report)
}

fn figures(round: &Round) -> Vec<(&'static str, f64)> {
    vec![
        ("decisions/s", round.rate),
        ("p50 ms", round.p50 / 1_000.0),
        ("p99 ms", round.p99 / 1_000.0),
        ("decisions a call", 1.0 / round.calls),
    ]
}
