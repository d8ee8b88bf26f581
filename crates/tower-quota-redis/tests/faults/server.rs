//! Tests faults of the server.

use tower_quota_core::{Charge, ChargeMode, Operation, Quota, Store};
use tower_quota_dev::{Fault, FaultProxy, RedisServer};
use tower_quota_redis::RedisStoreError;

use crate::load::{CAP, key};
use crate::rig::{DEADLINE, FAULT_TIME, TEST_TIMEOUT, Trial, pause, store_at, until, until_open};
use crate::server_count::CountCheck;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restarted_server_recovers() {
    let mut server = RedisServer::start();
    let trial = Trial::start(store_at(&server.url(), DEADLINE).await, DEADLINE).await;
    server.kill();
    pause(FAULT_TIME).await;
    server.start_again();
    let recovery = trial.recovery(trial.now()).await;
    pause(FAULT_TIME).await;
    // The server came back empty, so the limit may be spent again.
    trial
        .end(
            "killed and restarted, empty",
            2 * CAP,
            CountCheck::MayLack,
            Some(recovery),
        )
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dead_server_fails_decisions_at_once() {
    let mut server = RedisServer::start();
    let store = store_at(&server.url(), DEADLINE).await;
    let trial = Trial::start(store.clone(), DEADLINE).await;
    server.kill();
    pause(2 * FAULT_TIME).await;
    until_open(&store, &key("late")).await;
    let began = trial.now();
    let quota = Quota::per_hour(1);
    for _ in 0..1_000 {
        assert!(
            store
                .check(&[Charge::new("all", &quota, &key("late"))])
                .await
                .is_err()
        );
    }
    let each = trial.now().since(began) / 1_000;
    println!("an answer with the breaker open took {each:?}, of a thousand on average");
    assert!(each < DEADLINE / 20, "{each:?}");
    trial
        .end("killed for good", CAP, CountCheck::Skipped, None)
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopped_server_recovers() {
    let server = RedisServer::start();
    let trial = Trial::start(store_at(&server.url(), DEADLINE).await, DEADLINE).await;
    server.pause();
    trial.until_some_fail().await;
    pause(3 * FAULT_TIME).await;
    server.resume();
    let recovery = trial.recovery(trial.now()).await;
    trial
        .end("SIGSTOP for 3 s", CAP, CountCheck::Exact, Some(recovery))
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn late_decisions_charge_nothing() {
    let server = RedisServer::start();
    let store = store_at(&server.url(), DEADLINE).await;
    let (quota, late) = (Quota::per_day(100).fixed_window(), key("late"));
    let charge = Charge::new("all", &quota, &late);
    assert!(store.check(&[charge]).await.unwrap().is_allowed());
    server.pause();
    for charge in [charge, charge.cost(7), charge.refundable()] {
        let error = store.check(&[charge]).await.unwrap_err();
        assert!(matches!(error, RedisStoreError::Deadline { .. }), "{error}");
    }
    server.resume();
    // `close` ends once all late answers and refunds are done.
    assert!(store.close(TEST_TIMEOUT).await);
    let store = store_at(&server.url(), DEADLINE).await;
    let answer = store.check(&[charge.cost(0)]).await.unwrap();
    assert_eq!(answer.statuses()[0].remaining(), 99);
}

/// The owner of a lost hold repeats the call if the answer is late or lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn repeated_retake_takes_units_once() {
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    let store = store_at(&proxy.url(), DEADLINE).await;
    let (streams, ann) = (Quota::concurrent(5), key("ann"));
    let hold = Charge::new("streams", &streams, &ann).cost(2);
    for is_late in [false, true] {
        let taken_at = store.check(&[hold]).await.unwrap().at();
        server.command("FLUSHALL").unwrap();
        let (again, forced) = (
            Operation::Renew { taken_at },
            [hold.in_mode(ChargeMode::Forced)],
        );
        proxy.inflict(Fault::Mute);
        let error = store.apply(again, &forced).await.unwrap_err();
        assert!(matches!(error, RedisStoreError::Deadline { .. }), "{error}");
        until("the entry and its set exist", || {
            server.command("DBSIZE").unwrap().starts_with(":2")
        })
        .await;
        if !is_late {
            proxy.cut();
        }
        proxy.heal();
        let answered = async {
            loop {
                if let Ok(answer) = store.apply(again, &forced).await {
                    return answer.statuses()[0];
                }
                tokio::task::yield_now().await;
            }
        };
        let status = tokio::time::timeout(TEST_TIMEOUT, answered).await.unwrap();
        assert_eq!((status.taken, status.remaining()), (2, 3));
        let release = Operation::Refund { taken_at };
        let released = store.apply(release, &[hold]).await.unwrap();
        assert_eq!(released.statuses()[0].remaining(), 5);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flushed_script_is_sent_again() {
    let server = RedisServer::start();
    let trial = Trial::start(store_at(&server.url(), TEST_TIMEOUT).await, TEST_TIMEOUT).await;
    for _ in 0..200 {
        server.command("SCRIPT FLUSH").unwrap();
    }
    let recovery = trial.recovery(trial.now()).await;
    let outcome = trial
        .end(
            "SCRIPT FLUSH, 200 times",
            CAP,
            CountCheck::Exact,
            Some(recovery),
        )
        .await;
    assert_eq!(outcome.failed, 0, "{outcome:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_out_of_memory_charges_nothing() {
    let server = RedisServer::start_with(&["--maxmemory-policy", "noeviction"]);
    let store = store_at(&server.url(), TEST_TIMEOUT).await;
    let trial = Trial::start(store.clone(), TEST_TIMEOUT).await;
    server.command("CONFIG SET maxmemory 1").unwrap();
    let error = store
        .check(&[Charge::new("all", &Quota::per_hour(1), &key("late"))])
        .await
        .unwrap_err();
    assert!(
        matches!(error, RedisStoreError::Refused { .. }) && error.is_transient(),
        "{error:?}"
    );
    pause(FAULT_TIME).await;
    server.command("CONFIG SET maxmemory 0").unwrap();
    let recovery = trial.recovery(trial.now()).await;
    let outcome = trial
        .end(
            "out of memory, noeviction",
            CAP,
            CountCheck::Exact,
            Some(recovery),
        )
        .await;
    assert!(
        outcome.failed > 0 && outcome.unsure == 0,
        "a refused call is not counted: {outcome:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changed_password_recovers() {
    let server = RedisServer::start();
    let url = format!("redis://limiter:password@127.0.0.1:{}/", server.port());
    server
        .command("ACL SETUSER limiter on >password ~* +@all")
        .unwrap();
    let store = store_at(&url, DEADLINE).await;
    let trial = Trial::start(store.clone(), DEADLINE).await;
    server
        .command("ACL SETUSER limiter resetpass >another")
        .unwrap();
    server.command("CLIENT KILL USER limiter").unwrap();
    pause(FAULT_TIME).await;
    until_open(&store, &key("late")).await;
    server
        .command("ACL SETUSER limiter resetpass >password")
        .unwrap();
    let recovery = trial.recovery(trial.now()).await;
    trial
        .end(
            "password changed and changed back",
            CAP,
            CountCheck::Exact,
            Some(recovery),
        )
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn demoted_server_recovers() {
    let server = RedisServer::start();
    let store = store_at(&server.url(), TEST_TIMEOUT).await;
    let trial = Trial::start(store.clone(), TEST_TIMEOUT).await;
    // Make the server a replica of a missing primary.
    server.command("REPLICAOF 127.0.0.1 1").unwrap();
    let error = store
        .check(&[Charge::new("all", &Quota::per_hour(1), &key("late"))])
        .await
        .unwrap_err();
    assert!(
        matches!(error, RedisStoreError::Refused { .. }) && error.is_transient(),
        "{error:?}"
    );
    pause(FAULT_TIME).await;
    server.command("REPLICAOF NO ONE").unwrap();
    let recovery = trial.recovery(trial.now()).await;
    let outcome = trial
        .end("READONLY replica", CAP, CountCheck::Exact, Some(recovery))
        .await;
    assert!(
        outcome.failed > 0 && outcome.unsure == 0,
        "a refused call is not counted: {outcome:?}"
    );
}
