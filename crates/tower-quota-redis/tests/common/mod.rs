//! Provides helpers for the tests of this crate.

// Each test program uses a part of the helpers.
#![allow(dead_code)]

pub(crate) mod holds;

use std::time::Duration;

use redis::{Client, Connection};
use tokio::task::JoinHandle;
use tower_quota_core::{Charge, Clock, Decision, Key, MonotonicClock, Name, Quota, Store};
use tower_quota_dev::RedisServer;
use tower_quota_redis::{RedisOptions, RedisStore, RedisStoreError};

/// A deadline that only a broken test reaches. No result depends on the machine's speed.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) fn options() -> RedisOptions {
    RedisStore::options()
        .deadline(TEST_TIMEOUT)
        .connect_timeout(TEST_TIMEOUT)
}

pub(crate) async fn store_on(server: &RedisServer) -> RedisStore {
    options().connect(&server.url()).await.unwrap()
}

pub(crate) fn user(name: &str) -> Key<'static> {
    Key::owned(Name::new("user"), name)
}

pub(crate) const HOUR: Quota = Quota::per_hour(1_000);

/// Checks one unit of a client of `HOUR`. Returns the remaining units.
pub(crate) async fn check(store: &RedisStore) -> Result<u64, RedisStoreError> {
    let ann = user("ann");
    Ok(store
        .check(&[Charge::new("hour", &HOUR, &ann)])
        .await?
        .statuses()[0]
        .remaining())
}

/// A pending decision.
pub(crate) type Asked = JoinHandle<Result<Decision, RedisStoreError>>;

/// Sends a check without waiting for the answer. On one thread, checks leave in the order of the
/// calls.
pub(crate) fn ask(store: &RedisStore, name: &str) -> Asked {
    let user = user(name);
    tokio::spawn(store.check(&[Charge::new("hour", &HOUR, &user)]))
}

/// Sends free checks until an answer comes.
pub(crate) async fn until_answered(store: &RedisStore) {
    let (quota, client, clock) = (Quota::per_hour(1), user("ann"), MonotonicClock::new());
    let began = clock.now();
    while let Err(error) = store
        .check(&[Charge::new("hour", &quota, &client).cost(0)])
        .await
    {
        assert!(clock.now().since(began) < TEST_TIMEOUT, "{error:?}");
        // Yield to the task with the trial, because an open breaker answers at once.
        tokio::task::yield_now().await;
    }
}

/// Closes idle connections like a server's timeout or a balancer. The next decision must not fail.
#[expect(
    clippy::disallowed_methods,
    reason = "a store looks at its connection after a silence"
)]
pub(crate) async fn silences_cost_no_decision(server: &RedisServer, store: &RedisStore) {
    until_answered(store).await;
    for _ in 0..3 {
        server.command("CLIENT KILL TYPE normal").unwrap();
        tokio::time::sleep(Duration::from_millis(500)).await;
        check(store).await.unwrap();
    }
}

/// Opens another connection for the test.
pub(crate) fn look_at(server: &RedisServer) -> Connection {
    Client::open(server.url())
        .unwrap()
        .get_connection()
        .unwrap()
}

/// Returns the names of all keys, with the bytes of their entries. Fails if a key never expires.
pub(crate) fn entries(server: &RedisServer) -> Vec<(String, usize)> {
    let mut connection = look_at(server);
    let mut keys: Vec<String> = redis::cmd("KEYS").arg("*").query(&mut connection).unwrap();
    // Ignore the keys of the start-up check, which live for a millisecond.
    keys.retain(|key| !key.contains(":probe:"));
    keys.sort();
    let mut found = Vec::new();
    for key in keys {
        // The reply -2 means that the key has expired since.
        let left: i64 = redis::cmd("PTTL").arg(&key).query(&mut connection).unwrap();
        assert!(left > 0 || left == -2, "{key} has a time to live of {left}");
        if left != -2 {
            let size: usize = redis::cmd("STRLEN")
                .arg(&key)
                .query(&mut connection)
                .unwrap();
            found.push((key, size));
        }
    }
    found
}

/// Returns the number of times that the server has run a command, since its start or a reset of the
/// statistics.
pub(crate) fn calls(server: &RedisServer, command: &str) -> u64 {
    let statistics: String = redis::cmd("INFO")
        .arg("commandstats")
        .query(&mut look_at(server))
        .unwrap();
    let start = format!("cmdstat_{command}:calls=");
    let Some(line) = statistics
        .lines()
        .find_map(|line| line.strip_prefix(&start))
    else {
        return 0;
    };
    line.split(',').next().unwrap().parse().unwrap()
}
