//! Faults of the network between.

use std::time::Duration;

use tollgate_redis::{RedisStore, RedisStoreError};
use tollgate_testkit::{Fault, FaultProxy, RedisServer};

use crate::rig::{A_WHILE, CAP, DEADLINE, Trial, alone, pause, store_at};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_never_answered() {
    let _alone = alone().await;
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    proxy.inflict(Fault::Stall);
    let error = RedisStore::options().deadline(DEADLINE).connect(&proxy.url()).await.unwrap_err();
    assert!(matches!(error, RedisStoreError::Deadline { .. }), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn accepts_and_never_answers() {
    let outcome = under(Fault::Mute, "accepts and never answers", A_WHILE).await;
    assert!(outcome > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_partition_that_heals() {
    let outcome = under(Fault::Stall, "partition that heals", 3 * A_WHILE).await;
    assert!(outcome > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_refused() {
    let outcome = under(Fault::Refuse, "connections cut and refused", A_WHILE).await;
    assert!(outcome > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_just_over_the_deadline() {
    let late = DEADLINE + Duration::from_millis(50);
    let outcome = under(Fault::Delay(late), "answers 50 ms after the deadline", A_WHILE).await;
    assert!(outcome > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_under_the_deadline() {
    let _alone = alone().await;
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    // A decision may wait for one call before it leaves with the next, so two must fit.
    let (deadline, delay) = (10 * DEADLINE, 3 * DEADLINE);
    let trial = Trial::start(store_at(&proxy.url(), deadline).await, deadline).await;
    proxy.inflict(Fault::Delay(delay));
    pause(3 * A_WHILE).await;
    proxy.heal();
    let recovery = trial.recovery(trial.now()).await;
    let outcome = trial.end("answers under the deadline, after 600 ms", CAP, false, Some(recovery)).await;
    assert_eq!(outcome.failed, 0, "{outcome:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cut_in_mid_reply() {
    let _alone = alone().await;
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    let trial = Trial::start(store_at(&proxy.url(), DEADLINE).await, DEADLINE).await;
    let mut recovery = Duration::ZERO;
    for bytes in 0..30 {
        proxy.inflict(Fault::CutAfter(bytes));
        pause(Duration::from_millis(20)).await;
        recovery = recovery.max(trial.recovery(trial.now()).await);
    }
    let outcome = trial.end("cut in mid-reply, 30 times", CAP, false, Some(recovery)).await;
    assert!(outcome.failed > 0 && outcome.unsure > 0, "{outcome:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn probes_are_no_herd_and_end_with_the_store() {
    let _alone = alone().await;
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    let trial = Trial::start(store_at(&proxy.url(), DEADLINE).await, DEADLINE).await;
    proxy.inflict(Fault::Refuse);
    pause(A_WHILE).await;
    let before = proxy.connections();
    pause(A_WHILE).await;
    let probes = proxy.connections() - before;
    assert!((1..40).contains(&probes), "{probes} connections in a second with an open breaker");
    trial.end("probed while away", CAP, true, None).await;
    // The last clone is gone. What was under way ends.
    pause(A_WHILE).await;
    let before = proxy.connections();
    pause(A_WHILE).await;
    assert_eq!(proxy.connections(), before, "somebody probes for nobody");
}

/// A load while a fault lasts. How many requests failed.
async fn under(fault: Fault, name: &str, lasting: Duration) -> u64 {
    let _alone = alone().await;
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    let trial = Trial::start(store_at(&proxy.url(), DEADLINE).await, DEADLINE).await;
    proxy.inflict(fault);
    pause(lasting).await;
    proxy.heal();
    let recovery = trial.recovery(trial.now()).await;
    // What was held back is delivered by and by.
    pause(DEADLINE).await;
    trial.end(name, CAP, false, Some(recovery)).await.failed
}
