//! Tests decisions that share a call and do not affect each other.

use std::num::NonZeroU32;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use tokio::runtime::Handle;
use tower_quota_core::{Charge, Clock, MonotonicClock, Operation, Quota, Store};
use tower_quota_dev::RedisServer;
use tower_quota_redis::{RedisStore, RedisStoreError};

use crate::common::{Asked, HOUR, ask, calls, check, options, store_on, until_answered, user};

/// The time that a slow machine may take beyond a deadline.
const MARGIN: Duration = Duration::from_secs(10);
/// The maximum number of decisions in flight after few calls.
const WINDOW: usize = 128;

async fn left(asked: Asked) -> u64 {
    asked.await.unwrap().unwrap().statuses()[0].remaining()
}

/// Fills the window with calls to a paused server, so that later decisions wait.
async fn occupy(store: &RedisStore) -> Vec<Asked> {
    let asked = (0..WINDOW).map(|_| ask(store, "bob")).collect();
    tokio::task::yield_now().await;
    while store.stats().queued > 0 {
        tokio::task::yield_now().await;
    }
    asked
}

/// Makes a server delay all scripts until `unpause`.
fn pause(server: &RedisServer) {
    server.command("CLIENT PAUSE 60000 WRITE").unwrap();
}

fn unpause(server: &RedisServer) {
    server.command("CLIENT UNPAUSE").unwrap();
}

#[tokio::test]
async fn waiting_decisions_leave_in_few_calls() {
    let server = RedisServer::start();
    let store = store_on(&server).await;
    for i in 0..10 {
        assert_eq!(left(ask(&store, "ann")).await, 999 - i);
    }
    // The server learnt the script at the start, from a refused call and the source.
    assert_eq!(calls(&server, "evalsha") + calls(&server, "eval"), 12);

    server.command("CONFIG RESETSTAT").unwrap();
    let asked: Vec<Asked> = (0..512)
        .map(|i| ask(&store, &format!("user {i}")))
        .collect();
    for asked in asked {
        assert_eq!(left(asked).await, 999);
    }
    // The first two calls carry few decisions, and the others fill four calls.
    let calls = calls(&server, "evalsha");
    assert!((3..=7).contains(&calls), "{calls} calls");
}

/// Checks that a refused write fails only the decisions that need the write.
#[tokio::test]
async fn refusals_hold_while_server_refuses_writes() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().to_str().unwrap().to_owned();
    let server = RedisServer::start_with(&["--save", "3600 1", "--dir", &path]);
    let store = store_on(&server).await;
    let (ann, quota) = (user("ann"), Quota::per_hour(3));
    let spent = Charge::new("few", &quota, &ann);
    assert!(store.check(&[spent.cost(3)]).await.unwrap().is_allowed());
    drop(home);
    let faults = [
        ("OOM", "CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0"),
        (
            "NOREPLICAS",
            "CONFIG SET min-replicas-to-write 1",
            "CONFIG SET min-replicas-to-write 0",
        ),
        // The folder for the snapshot is missing, so saving fails.
        (
            "MISCONF",
            "BGSAVE",
            "CONFIG SET stop-writes-on-bgsave-error no",
        ),
        ("READONLY", "REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE"),
    ];
    for (code, fault, mend) in faults {
        server.command(fault).unwrap();
        while code == "MISCONF"
            && !server
                .command("INFO persistence")
                .unwrap()
                .contains("rdb_last_bgsave_status:err")
        {
            tokio::task::yield_now().await;
        }
        let write = "EVAL \"return redis.call('PSETEX', KEYS[1], 1, '')\" 1 any";
        if server.command(write).unwrap().starts_with("+OK") {
            // Redis 6.2 lets scripts write despite a broken disk or missing replicas.
            assert!(["MISCONF", "NOREPLICAS"].contains(&code), "{code}");
            server.command(mend).unwrap();
            continue;
        }
        pause(&server);
        let under_way = occupy(&store).await;
        let refused: Vec<_> = (0..20)
            .map(|_| tokio::spawn(store.check(&[spent])))
            .collect();
        let new: Vec<Asked> = (0..20).map(|i| ask(&store, &format!("user {i}"))).collect();
        tokio::task::yield_now().await;
        unpause(&server);
        for answer in refused {
            assert!(
                answer.await.unwrap().unwrap().retry_after().is_some(),
                "{code}"
            );
        }
        for answer in new.into_iter().chain(under_way) {
            let error = answer.await.unwrap().unwrap_err();
            let is_refused = matches!(error, RedisStoreError::Refused { .. });
            assert!(is_refused && error.is_transient(), "{error:?}");
            let words = format!("refused the call: {code} ");
            assert!(error.to_string().contains(&words), "{error}");
        }
        let reset = store.apply(Operation::Reset, &[spent]).await;
        // A server without memory still deletes.
        assert_eq!(reset.is_ok(), code == "OOM", "{code}");
        server.command(mend).unwrap();
        if reset.is_ok() {
            assert!(store.check(&[spent.cost(3)]).await.unwrap().is_allowed());
        }
    }
    // The store counted no request meanwhile.
    assert_eq!(left(ask(&store, "user 0")).await, 999);
}

/// Uses a user who may write but not delete. The reset fails, after the call may have written other
/// entries.
#[tokio::test]
async fn refused_write_fails_only_unwritten_decisions() {
    let server = RedisServer::start();
    let store = store_on(&server).await;
    server.command("ACL SETUSER default -del").unwrap();
    for round in 0..20 {
        let (spent, keeps) = (format!("{round} spent"), format!("{round} keeps"));
        for name in [&spent, &keeps] {
            assert_eq!(left(ask(&store, name)).await, 999);
        }
        pause(&server);
        let under_way = occupy(&store).await;
        let user = user(&spent);
        let asked = ask(&store, &keeps);
        let reset = store.apply(Operation::Reset, &[Charge::new("hour", &HOUR, &user)]);
        let reset = tokio::spawn(reset);
        tokio::task::yield_now().await;
        unpause(&server);
        assert!(reset.await.unwrap().is_err());
        let expected = if asked.await.unwrap().is_ok() {
            997
        } else {
            998
        };
        assert_eq!(left(ask(&store, &keeps)).await, expected, "{round}");
        for answer in under_way {
            answer.await.unwrap().unwrap();
        }
    }
}

#[tokio::test]
async fn decisions_of_one_call_count_in_order() {
    let server = RedisServer::start();
    let store = store_on(&server).await;
    let asked: Vec<Asked> = (0..300).map(|_| ask(&store, "ann")).collect();
    for (i, asked) in (0..).zip(asked) {
        assert_eq!(left(asked).await, 999 - i);
    }
}

#[tokio::test]
async fn abandoned_decisions_are_not_charged() {
    let server = RedisServer::start();
    let store = store_on(&server).await;
    assert_eq!(left(ask(&store, "ann")).await, 999);
    pause(&server);
    let under_way = occupy(&store).await;
    let abandoned: Vec<Asked> = (0..100).map(|_| ask(&store, "ann")).collect();
    let stays = ask(&store, "ann");
    tokio::task::yield_now().await;
    for asked in &abandoned {
        asked.abort();
    }
    for asked in abandoned {
        assert!(asked.await.unwrap_err().is_cancelled());
    }
    unpause(&server);
    assert_eq!(left(stays).await, 998);
    for asked in under_way {
        asked.await.unwrap().unwrap();
    }
    assert_eq!(left(ask(&store, "ann")).await, 997);
}

#[tokio::test]
async fn silent_server_fails_decisions_at_deadline() {
    const SHORT: Duration = Duration::from_millis(200);
    let server = RedisServer::start();
    let store = options()
        .deadline(SHORT)
        .connect_lazily()
        .connect(&server.url())
        .await
        .unwrap();
    until_answered(&store).await;
    let clock = MonotonicClock::new();
    pause(&server);
    let started = clock.now();
    let asked: Vec<Asked> = (0..300)
        .map(|i| ask(&store, &format!("user {i}")))
        .collect();
    let (mut sent, mut not_sent) = (0, 0);
    for asked in asked {
        match asked.await.unwrap().unwrap_err() {
            RedisStoreError::Deadline { after: SHORT, .. } => sent += 1,
            RedisStoreError::Overloaded {
                deadline: SHORT, ..
            } => not_sent += 1,
            error => panic!("{error:?}"),
        }
    }
    assert!(
        sent > 0 && not_sent > 0,
        "{sent} may have been charged, {not_sent} were not sent"
    );
    let taken = clock.now().since(started);
    assert!(taken >= SHORT && taken < SHORT + MARGIN, "{taken:?}");
}

#[tokio::test]
async fn too_many_charges_are_an_error() {
    let server = RedisServer::start();
    let store = store_on(&server).await;
    let users: Vec<_> = (0..33).map(|i| user(&i.to_string())).collect();
    let charges: Vec<_> = users
        .iter()
        .map(|user| Charge::new("hour", &HOUR, user))
        .collect();
    let error = store.check(&charges).await.unwrap_err();
    assert!(
        matches!(
            error,
            RedisStoreError::TooManyCharges {
                charges: 33,
                most: 32,
                ..
            }
        ),
        "{error:?}"
    );
    assert_eq!(
        store.check(&charges[1..]).await.unwrap().statuses().len(),
        32
    );
}

#[test]
fn store_survives_the_end_of_its_runtime() {
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
    };
    let server = RedisServer::start();
    let first = runtime();
    let store = first.block_on(store_on(&server));
    pause(&server);
    first.block_on(async {
        for _ in 0..100 {
            drop(ask(&store, "ann"));
        }
        tokio::task::yield_now().await;
    });
    drop(first);
    unpause(&server);
    // The connection has ended with its runtime.
    runtime().block_on(async {
        until_answered(&store).await;
        assert!(left(ask(&store, "ann")).await >= 900);
    });
}

#[tokio::test]
async fn lone_decision_needs_no_task() {
    let server = RedisServer::start();
    let store = store_on(&server).await;
    for used in 1..=16 {
        assert_eq!(check(&store).await.unwrap(), 1_000 - used);
    }
    let tasks = || Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    let mut decision = Box::pin(check(&store));
    let mut context = Context::from_waker(Waker::noop());
    assert!(decision.as_mut().poll(&mut context).is_pending());
    assert_eq!(tasks(), before);
    // The decision is in flight, so a task takes over.
    drop(decision);
    assert_eq!(tasks(), before + 1);
    assert_eq!(check(&store).await.unwrap(), 982);
}

#[tokio::test]
async fn unpolled_decisions_delay_no_others() {
    let server = RedisServer::start();
    let store = store_on(&server).await;
    assert_eq!(left(ask(&store, "ann")).await, 999);
    let ann = user("ann");
    let mut held: Vec<_> = (0..4)
        .map(|_| store.check(&[Charge::new("hour", &HOUR, &ann)]))
        .collect();
    for asked in &mut held {
        assert!(
            asked
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
                .is_pending()
        );
    }
    assert_eq!(left(ask(&store, "bob")).await, 999);
    for (i, asked) in (0..).zip(held) {
        assert_eq!(asked.await.unwrap().statuses()[0].remaining(), 998 - i);
    }
}

#[tokio::test]
async fn opening_breaker_fails_waiting_decisions_at_once() {
    let server = RedisServer::start();
    let store = options()
        .breaker(NonZeroU32::MIN)
        .connect(&server.url())
        .await
        .unwrap();
    assert_eq!(left(ask(&store, "ann")).await, 999);
    let clock = MonotonicClock::new();
    let started = clock.now();
    pause(&server);
    let under_way = occupy(&store).await;
    let waiting: Vec<Asked> = (0..300).map(|_| ask(&store, "ann")).collect();
    tokio::task::yield_now().await;
    server
        .command("CLIENT KILL TYPE normal SKIPME yes")
        .unwrap();
    for asked in under_way {
        let error = asked.await.unwrap().unwrap_err();
        assert!(matches!(error, RedisStoreError::Lost { .. }), "{error:?}");
    }
    for asked in waiting {
        let error = asked.await.unwrap().unwrap_err();
        assert!(
            matches!(error, RedisStoreError::BreakerOpen { .. }),
            "{error:?}"
        );
    }
    let taken = clock.now().since(started);
    assert!(taken < MARGIN, "{taken:?}");
}

/// Checks that callers who leave long before the deadline do not hide a silent server from the
/// breaker.
#[tokio::test]
async fn impatient_callers_hide_no_silent_server() {
    let server = RedisServer::start();
    let short = options()
        .deadline(Duration::from_millis(100))
        .breaker(NonZeroU32::MIN);
    let store = short.connect(&server.url()).await.unwrap();
    pause(&server);
    let clock = MonotonicClock::new();
    let started = clock.now();
    loop {
        let asked = ask(&store, "ann");
        let abort = asked.abort_handle();
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        abort.abort();
        if let Ok(Err(RedisStoreError::BreakerOpen { .. })) = asked.await {
            break;
        }
        assert!(
            clock.now().since(started) < MARGIN,
            "the breaker stays closed"
        );
    }
}

#[test]
fn breaker_closes_without_a_running_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let mut server = RedisServer::start();
    let short = options()
        .deadline(Duration::from_secs(1))
        .breaker(NonZeroU32::MIN);
    let store = runtime.block_on(short.connect(&server.url())).unwrap();
    let ann = user("ann");
    let check = || runtime.block_on(store.check(&[Charge::new("hour", &HOUR, &ann)]));
    server.kill();
    let clock = MonotonicClock::new();
    let started = clock.now();
    while !matches!(check(), Err(RedisStoreError::BreakerOpen { .. })) {
        assert!(clock.now().since(started) < MARGIN);
    }
    server.start_again();
    let started = clock.now();
    while check().is_err() {
        assert!(
            clock.now().since(started) < MARGIN,
            "the breaker stays open"
        );
        std::thread::yield_now();
    }
}

/// A paused process, for example in a frozen container, finds its timers due before it reads the answer.
#[tokio::test]
async fn lone_caller_reads_answer_after_pause() {
    const DEADLINE: Duration = Duration::from_millis(200);
    let server = RedisServer::start();
    let store = options()
        .deadline(DEADLINE)
        .connect(&server.url())
        .await
        .unwrap();
    // After some calls with one decision each, the caller sends its decisions itself.
    for _ in 0..WINDOW {
        check(&store).await.unwrap();
    }
    server.pause();
    let mut asked = pin!(check(&store));
    tokio::select! {
        biased;
        answer = &mut asked => panic!("the server is paused: {answer:?}"),
        // The task of the connection writes the call meanwhile.
        () = tokio::task::yield_now() => server.resume(),
    }
    #[expect(clippy::disallowed_methods, reason = "the pause of the process")]
    std::thread::sleep(2 * DEADLINE);
    assert!(asked.await.is_ok());
}
