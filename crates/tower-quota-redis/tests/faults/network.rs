//! Tests faults of the network.

use std::time::Duration;

use tokio::task::JoinSet;
use tower_quota_core::{Charge, Store};
use tower_quota_dev::{Fault, FaultProxy, RedisServer};
use tower_quota_redis::RedisStore;

use crate::lag::Watchdog;
use crate::load::{CAP, COUNTED, key};
use crate::rig::{DEADLINE, FAULT_TIME, Trial, pause, store_at, until};
use crate::server_count::CountCheck;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mute_server_recovers() {
    under(Fault::Mute, "accepts and never answers", FAULT_TIME).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn healed_partition_recovers() {
    under(Fault::Stall, "partition that heals", 3 * FAULT_TIME).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_connections_recover() {
    under(Fault::Refuse, "connections cut and refused", FAULT_TIME).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_over_the_deadline_recover() {
    let late = DEADLINE + Duration::from_millis(50);
    under(
        Fault::Delay(late),
        "answers 50 ms after the deadline",
        FAULT_TIME,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_under_the_deadline_succeed() {
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    // A decision may wait for one call and leave in the next, so the deadline has room for two
    // calls and a loaded machine.
    let (deadline, delay) = (40 * DEADLINE, 6 * DEADLINE);
    let trial = Trial::start(store_at(&proxy.url(), deadline).await, deadline).await;
    proxy.inflict(Fault::Delay(delay));
    pause(3 * FAULT_TIME).await;
    proxy.heal();
    let recovery = trial.recovery(trial.now()).await;
    let outcome = trial
        .end(
            "answers under the deadline, after 600 ms",
            CAP,
            CountCheck::Exact,
            Some(recovery),
        )
        .await;
    let is_machine_at_fault = outcome.lag > (deadline - 2 * delay) / 4;
    assert!(outcome.failed == 0 || is_machine_at_fault, "{outcome:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cut_replies_are_charged_once() {
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    let trial = Trial::start(store_at(&proxy.url(), DEADLINE).await, DEADLINE).await;
    let mut recovery = Duration::ZERO;
    for bytes in 0..30 {
        proxy.inflict(Fault::CutAfter(bytes));
        until("the reply is cut", || proxy.fault().is_none()).await;
        recovery = recovery.max(trial.recovery(trial.now()).await);
    }
    let outcome = trial
        .end(
            "cut in mid-reply, 30 times",
            CAP,
            CountCheck::Exact,
            Some(recovery),
        )
        .await;
    assert!(outcome.failed > 0 && outcome.unsure > 0, "{outcome:?}");
}

/// A failover to another zone costs the latency of the zone, even beyond half of the deadline. The delays are long, so
/// that a loaded machine adds little.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn longer_way_fails_no_decision() {
    let server = RedisServer::start();
    let watchdog = Watchdog::start();
    let mut steps = JoinSet::new();
    for (delay, deadline) in [(220, 500), (300, 500), (450, 1_000), (600, 1_000)] {
        let [delay, deadline] = [delay, deadline].map(Duration::from_millis);
        let proxy = FaultProxy::to(server.port());
        let store = store_at(&proxy.url(), deadline).await;
        steps.spawn(async move {
            let mut failed = 0;
            // The store forgets the shorter way within seconds. Only the last step counts.
            for (way, seconds) in [(Duration::from_millis(5), 1), (delay, 5), (delay, 2)] {
                proxy.inflict(Fault::Delay(way));
                failed = failures(&store, seconds).await;
            }
            (delay, deadline, failed)
        });
    }
    for (delay, deadline, failed) in steps.join_all().await {
        let lag = watchdog.worst();
        println!("{delay:?} of {deadline:?}: {failed} failures, {lag:?} late");
        assert!(
            failed == 0 || lag > (deadline - delay) / 4,
            "{delay:?} of {deadline:?}: {failed}"
        );
    }
}

/// Sends 100 decisions a second, and returns how many fail.
async fn failures(store: &RedisStore, seconds: u64) -> usize {
    let mut decisions = JoinSet::new();
    for number in 0..100 * seconds {
        let store = store.clone();
        decisions.spawn(async move {
            let key = key(&number.to_string());
            store.check(&[Charge::new("all", &COUNTED, &key)]).await
        });
        pause(Duration::from_millis(10)).await;
    }
    let answers = decisions.join_all().await;
    answers.iter().filter(|answer| answer.is_err()).count()
}

/// Puts a store under load during a fault that makes requests fail.
async fn under(fault: Fault, name: &str, lasting: Duration) {
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    let trial = Trial::start(store_at(&proxy.url(), DEADLINE).await, DEADLINE).await;
    proxy.inflict(fault);
    trial.until_some_fail().await;
    pause(lasting).await;
    proxy.heal();
    let recovery = trial.recovery(trial.now()).await;
    // The proxy delivers the bytes that it held back.
    pause(DEADLINE).await;
    trial
        .end(name, CAP, CountCheck::Exact, Some(recovery))
        .await;
}
