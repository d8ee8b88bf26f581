//! Helpers that the tests of this crate share.

// Each test file is a program of its own and uses a part of this.
#![allow(dead_code)]

use std::time::Duration;

use redis::{Client, Connection};
use tokio::task::JoinHandle;
use tower_quota_core::{Charge, Clock, Decision, Key, MonotonicClock, Name, Quota, Store};
use tower_quota_redis::{RedisOptions, RedisStore, RedisStoreError};
use tower_quota_testkit::RedisServer;

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

/// Checks one unit of a client of `HOUR`. Returns how many are left.
pub(crate) async fn check(store: &RedisStore) -> Result<u64, RedisStoreError> {
    let ann = user("ann");
    Ok(store
        .check(&[Charge::new("hour", &HOUR, &ann)])
        .await?
        .statuses()[0]
        .remaining())
}

/// A decision that is asked for and may be answered later.
pub(crate) type Asked = JoinHandle<Result<Decision, RedisStoreError>>;

/// Asks without waiting for the answer. On one thread, what is asked first is sent first.
pub(crate) fn ask(store: &RedisStore, name: &str) -> Asked {
    let user = user(name);
    tokio::spawn(store.check(&[Charge::new("hour", &HOUR, &user)]))
}

/// Checks at no cost until there is an answer.
pub(crate) async fn until_answered(store: &RedisStore) {
    let (quota, client, clock) = (Quota::per_hour(1), user("ann"), MonotonicClock::new());
    let began = clock.now();
    while let Err(error) = store
        .check(&[Charge::new("hour", &quota, &client).cost(0)])
        .await
    {
        assert!(clock.now().since(began) < TEST_TIMEOUT, "{error:?}");
        // An open breaker answers at once, and the task that probes needs its turn.
        tokio::task::yield_now().await;
    }
}

/// Closes idle connections, as a server's timeout or a balancer does. The next decision must not fail.
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

/// Opens a connection of the test's own.
pub(crate) fn look_at(server: &RedisServer) -> Connection {
    Client::open(server.url())
        .unwrap()
        .get_connection()
        .unwrap()
}

/// Returns what is stored: the name of each key and the size of its entry in bytes. Fails if a key would never expire.
pub(crate) fn entries(server: &RedisServer) -> Vec<(String, usize)> {
    let mut connection = look_at(server);
    let mut keys: Vec<String> = redis::cmd("KEYS").arg("*").query(&mut connection).unwrap();
    // The keys of the start live for a millisecond.
    keys.retain(|key| !key.contains(":probe:"));
    keys.sort();
    let mut found = Vec::new();
    for key in keys {
        // -2: it expired since it was listed.
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

/// Returns how often the server has run a command since it was started or its statistics were reset.
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
