//! Decisions that travel together, and keep out of each other's way.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

mod common;

use std::num::NonZeroU32;
use std::task::{Context, Waker};
use std::time::Duration;

use tokio::task::JoinHandle;
use tower_quota_core::{Charge, Clock, Decision, MonotonicClock, Quota, Store};
use tower_quota_redis::{RedisStore, RedisStoreError};
use tower_quota_testkit::RedisServer;

use self::common::{calls, options, store_on, until_answered, user};

const HOUR: Quota = Quota::per_hour(1_000);
/// What a slow machine may take beyond a deadline.
const MARGIN: Duration = Duration::from_secs(10);

type Asked = JoinHandle<Result<Decision, RedisStoreError>>;

/// Asks without waiting for the answer. These tests run on one thread: what is asked first is sent first.
fn ask(store: &RedisStore, name: &str) -> Asked {
    let user = user(name);
    tokio::spawn(store.check(&[Charge::new("hour", &HOUR, &user)]))
}

async fn left(asked: Asked) -> u64 {
    asked.await.unwrap().unwrap().statuses()[0].remaining()
}

/// Makes a server leave all scripts waiting until it is told otherwise.
fn pause(server: &RedisServer) {
    server.command("CLIENT PAUSE 60000 WRITE").unwrap();
}

fn unpause(server: &RedisServer) {
    server.command("CLIENT UNPAUSE").unwrap();
}

#[tokio::test]
async fn what_waits_goes_in_few_calls_and_what_need_not_at_once() {
    let server = RedisServer::start();
    let store = store_on(&server).await;
    for i in 0..10 {
        assert_eq!(left(ask(&store, "ann")).await, 999 - i);
    }
    // The server learns the script from the first call, which it refuses.
    assert_eq!(calls(&server, "evalsha") + calls(&server, "eval"), 11);

    server.command("CONFIG RESETSTAT").unwrap();
    let asked: Vec<Asked> = (0..512).map(|i| ask(&store, &format!("user {i}"))).collect();
    for asked in asked {
        assert_eq!(left(asked).await, 999);
    }
    // One needs no lane, two find a free one; the other 509 fill four calls.
    let calls = calls(&server, "evalsha");
    assert!((3..=7).contains(&calls), "{calls} calls");
}

#[tokio::test]
async fn decisions_of_one_call_count_one_after_the_other() {
    let server = RedisServer::start();
    let store = store_on(&server).await;
    let asked: Vec<Asked> = (0..300).map(|_| ask(&store, "ann")).collect();
    for (i, asked) in (0..).zip(asked) {
        assert_eq!(left(asked).await, 999 - i);
    }
}

#[tokio::test]
async fn a_state_that_makes_no_sense_spoils_only_its_own_decisions() {
    let server = RedisServer::start();
    let store = options().readable_keys(true).connect(&server.url()).await.unwrap();
    server.command(&format!("SET {} nonsense", store.key_of(&user("eve")))).unwrap();
    let asked: Vec<(bool, Asked)> = (0..60)
        .map(|i| (i % 3 == 0, i))
        .map(|(is_eve, i)| (is_eve, ask(&store, &if is_eve { "eve".to_owned() } else { format!("user {i}") })))
        .collect();
    for (is_eve, asked) in asked {
        match asked.await.unwrap() {
            Ok(decision) => assert!(!is_eve && decision.statuses()[0].remaining() == 999, "{decision:?}"),
            Err(error) => assert!(is_eve && matches!(error, RedisStoreError::State { .. }), "{error:?}"),
        }
    }
}

#[tokio::test]
async fn who_has_gone_is_not_counted() {
    let server = RedisServer::start();
    let store = store_on(&server).await;
    assert_eq!(left(ask(&store, "ann")).await, 999);
    pause(&server);
    // One needs no lane, and then both lanes are taken.
    let under_way = [ask(&store, "bob"), ask(&store, "bob"), ask(&store, "bob")];
    tokio::task::yield_now().await;
    let gone: Vec<Asked> = (0..100).map(|_| ask(&store, "ann")).collect();
    let stays = ask(&store, "ann");
    tokio::task::yield_now().await;
    for asked in &gone {
        asked.abort();
    }
    for asked in gone {
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
async fn each_decision_has_a_deadline_of_its_own() {
    const SHORT: Duration = Duration::from_millis(200);
    let server = RedisServer::start();
    let store = options().deadline(SHORT).connect_lazily().connect(&server.url()).await.unwrap();
    until_answered(&store).await;
    let clock = MonotonicClock::new();
    pause(&server);
    let started = clock.now();
    let asked: Vec<Asked> = (0..300).map(|i| ask(&store, &format!("user {i}"))).collect();
    for asked in asked {
        let error = asked.await.unwrap().unwrap_err();
        assert!(matches!(error, RedisStoreError::Deadline { after: SHORT, .. }), "{error:?}");
    }
    let taken = clock.now().since(started);
    assert!(taken >= SHORT && taken < SHORT + MARGIN, "{taken:?}");
}

#[tokio::test]
async fn an_error_of_a_call_is_each_ones_own() {
    let server = RedisServer::start_with(&["--maxmemory-policy", "noeviction"]);
    let store = store_on(&server).await;
    assert_eq!(left(ask(&store, "ann")).await, 999);
    server.command("CONFIG SET maxmemory 1").unwrap();
    let asked: Vec<Asked> = (0..100).map(|_| ask(&store, "ann")).collect();
    for asked in asked {
        let error = asked.await.unwrap().unwrap_err();
        assert!(matches!(error, RedisStoreError::Refused { .. }) && error.is_transient(), "{error:?}");
    }
    server.command("CONFIG SET maxmemory 0").unwrap();
    assert_eq!(left(ask(&store, "ann")).await, 998);
}

#[tokio::test]
async fn too_many_charges_are_turned_away() {
    let server = RedisServer::start();
    let store = store_on(&server).await;
    let users: Vec<_> = (0..33).map(|i| user(&i.to_string())).collect();
    let charges: Vec<_> = users.iter().map(|user| Charge::new("hour", &HOUR, user)).collect();
    let error = store.check(&charges).await.unwrap_err();
    assert!(matches!(error, RedisStoreError::TooManyCharges { charges: 33, most: 32 }), "{error:?}");
    assert_eq!(store.check(&charges[1..]).await.unwrap().statuses().len(), 32);
}

#[test]
fn a_runtime_that_ends_under_its_decisions_leaves_the_store_whole() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
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
    // The connection has gone with its runtime: that is noticed once, and then there is another.
    runtime().block_on(async {
        let _ = ask(&store, "ann").await.unwrap();
        assert!(left(ask(&store, "ann")).await >= 900);
    });
}

#[tokio::test]
async fn who_asks_and_does_not_look_for_the_answer_holds_nobody_up() {
    let server = RedisServer::start();
    let store = store_on(&server).await;
    assert_eq!(left(ask(&store, "ann")).await, 999);
    let ann = user("ann");
    let mut held: Vec<_> = (0..4).map(|_| store.check(&[Charge::new("hour", &HOUR, &ann)])).collect();
    for asked in &mut held {
        assert!(asked.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    assert_eq!(left(ask(&store, "bob")).await, 999);
    for (i, asked) in (0..).zip(held) {
        assert_eq!(asked.await.unwrap().statuses()[0].remaining(), 998 - i);
    }
}

#[tokio::test]
async fn who_waits_is_told_at_once_when_the_breaker_opens() {
    let server = RedisServer::start();
    let store = options().breaker(NonZeroU32::MIN).connect(&server.url()).await.unwrap();
    assert_eq!(left(ask(&store, "ann")).await, 999);
    let clock = MonotonicClock::new();
    let started = clock.now();
    pause(&server);
    let under_way = [ask(&store, "ann"), ask(&store, "ann"), ask(&store, "ann")];
    tokio::task::yield_now().await;
    let waiting: Vec<Asked> = (0..300).map(|_| ask(&store, "ann")).collect();
    tokio::task::yield_now().await;
    server.command("CLIENT KILL TYPE normal SKIPME yes").unwrap();
    for asked in under_way {
        let error = asked.await.unwrap().unwrap_err();
        assert!(matches!(error, RedisStoreError::Lost { .. }), "{error:?}");
    }
    for asked in waiting {
        let error = asked.await.unwrap().unwrap_err();
        assert!(matches!(error, RedisStoreError::BreakerOpen { .. }), "{error:?}");
    }
    let taken = clock.now().since(started);
    assert!(taken < MARGIN, "{taken:?}");
}

/// Callers that give up long before the deadline must not hide from the breaker that nobody answers.
#[tokio::test]
async fn a_silent_server_is_found_out_though_no_caller_waits_for_it() {
    let server = RedisServer::start();
    let patient = options().deadline(Duration::from_millis(100)).breaker(NonZeroU32::MIN);
    let store = patient.connect(&server.url()).await.unwrap();
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
        assert!(clock.now().since(started) < MARGIN, "the breaker stays closed");
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "time must pass while nothing drives the runtime")]
fn the_breaker_closes_on_a_runtime_that_runs_only_while_it_is_asked() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut server = RedisServer::start();
    let short = options().deadline(Duration::from_secs(1)).breaker(NonZeroU32::MIN);
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
        assert!(clock.now().since(started) < MARGIN, "the breaker stays open");
        std::thread::sleep(Duration::from_millis(10));
    }
}
