//! Where subjects are kept, and when they move.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

mod common;

use std::time::Duration;

use tower_quota_core::{Charge, Clock, Operation, Quota, Store};
use tower_quota_redis::RedisStore;
use tower_quota_testkit::{ManualClock, RedisServer};

use self::common::{look_at, options, subjects, user};

const MINUTE: Duration = Duration::from_secs(60);
const SECOND: Quota = Quota::per_second(10);
const DAY: Quota = Quota::per_day(2);

async fn store(server: &RedisServer, clock: &ManualClock) -> RedisStore {
    options().readable_keys(true).clock(clock.clone()).connect(&server.url()).await.unwrap()
}

/// The names of all keys, without what they all begin with.
fn keys(server: &RedisServer) -> Vec<String> {
    subjects(server);
    let mut keys: Vec<String> = redis::cmd("KEYS").arg("*").query(&mut look_at(server)).unwrap();
    keys.sort();
    keys.iter().map(|key| key.strip_prefix("quota:2:{0}:").unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_minutes_hash_is_gone_when_all_in_it_are_whole() {
    let server = RedisServer::start();
    let clock = ManualClock::default();
    let first = clock.now().as_micros() / 60_000_000;
    let store = store(&server, &clock).await;
    let (ann, bob) = (user("ann"), user("bob"));
    let quota = Quota::per_minute(2);
    let (anns, bobs) = (Charge::new("second", &quota, &ann), Charge::new("second", &SECOND, &bob));

    // Spent half a minute before the border, whole half a minute after: the next minute still has to know.
    clock.advance(MINUTE / 2);
    store.check(&[anns.cost(2)]).await.unwrap();
    assert_eq!(keys(&server), [first.to_string(), "quotas".to_owned()]);

    clock.advance(MINUTE / 2);
    store.check(&[bobs]).await.unwrap();
    assert_eq!(keys(&server), [first.to_string(), (first + 1).to_string(), "quotas".to_owned()]);
    let looked = store.check(&[anns.cost(0)]).await.unwrap();
    assert_eq!(looked.statuses()[0].remaining(), 1, "found in the hash of the minute before");

    clock.advance(MINUTE);
    store.check(&[bobs]).await.unwrap();
    assert_eq!(keys(&server), [(first + 1).to_string(), (first + 2).to_string(), "quotas".to_owned()]);
    clock.advance(10 * MINUTE);
    store.check(&[bobs]).await.unwrap();
    assert_eq!(keys(&server), [(first + 12).to_string(), "quotas".to_owned()]);
}

#[tokio::test]
async fn a_subject_is_in_one_place() {
    let server = RedisServer::start();
    let clock = ManualClock::default();
    let first = clock.now().as_micros() / 60_000_000;
    let store = store(&server, &clock).await;
    let ann = user("ann");
    let (second, day) = (Charge::new("second", &SECOND, &ann), Charge::new("day", &DAY, &ann));
    let place = || subjects(&server).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    let hash = |minute: u64| format!("quota:2:{{0}}:{minute} {:x?}", b"user:ann");

    store.check(&[second]).await.unwrap();
    assert_eq!(place(), [hash(first)]);
    // A day's limit makes it last.
    let mut taken = store.check(&[second, day]).await.unwrap();
    assert_eq!(place(), ["quota:2:{0}:user:ann"]);
    // Given back, it does not.
    store.apply(taken.refund().unwrap(), &[day]).await.unwrap();
    assert_eq!(place(), [hash(first)]);
    clock.advance(MINUTE);
    store.check(&[second]).await.unwrap();
    assert_eq!(place(), [hash(first + 1)]);
    store.apply(Operation::Reset, &[second]).await.unwrap();
    assert_eq!(place(), Vec::<String>::new());
}

#[tokio::test]
async fn a_clock_that_was_far_ahead_fills_no_hash_for_long() {
    let server = RedisServer::start();
    let clock = ManualClock::default();
    let store = store(&server, &clock).await;
    let now = clock.now();
    let (ann, bob) = (user("ann"), user("bob"));
    clock.advance(365 * 24 * 60 * MINUTE);
    store.check(&[Charge::new("second", &SECOND, &ann)]).await.unwrap();
    clock.set(now);
    store.check(&[Charge::new("second", &SECOND, &bob)]).await.unwrap();
    assert_eq!(keys(&server).last().unwrap(), "user:bob", "with a time to live of its own");
}

#[tokio::test]
async fn quotas_that_were_lost_cost_only_limits_that_are_not_asked_for() {
    let server = RedisServer::start();
    let clock = ManualClock::default();
    let store = store(&server, &clock).await;
    let ann = user("ann");
    let (second, day) = (Charge::new("second", &SECOND, &ann), Charge::new("day", &DAY, &ann));
    store.check(&[second, day]).await.unwrap();
    server.command("DEL quota:2:{0}:quotas").unwrap();

    assert_eq!(store.check(&[second.cost(0)]).await.unwrap().statuses()[0].remaining(), 9);
    assert_eq!(store.check(&[day.cost(0)]).await.unwrap().statuses()[0].remaining(), 1);
    // Written without the day's quota, the day is forgotten.
    assert_eq!(store.check(&[second]).await.unwrap().statuses()[0].remaining(), 8);
    assert_eq!(store.check(&[day]).await.unwrap().statuses()[0].remaining(), 1);
}
