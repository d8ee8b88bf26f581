//! Connections from a pool.

#![cfg(feature = "pool")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod common;

use core::num::NonZeroU32;

use deadpool_redis::{Config, Pool, Runtime};
use tower_quota_redis::RedisStoreError;
use tower_quota_testkit::RedisServer;

use self::common::{TEST_TIMEOUT, calls, check, options, until_answered};

fn pool(url: &str) -> Pool {
    Config::from_url(url)
        .builder()
        .unwrap()
        .max_size(1)
        .runtime(Runtime::Tokio1)
        .build()
        .unwrap()
}

#[tokio::test]
async fn pooled_connection_is_checked_once() {
    let server = RedisServer::start();
    let pool = pool(&server.url());
    drop(pool.get().await.unwrap());
    let store = options().pool(pool.clone()).unwrap();
    for i in 0..50 {
        assert_eq!(check(&store).await.unwrap(), 999 - i);
    }
    assert!(calls(&server, "ping") <= 1);
    assert_eq!(pool.status().available, 0);
    drop(store);
    // The tasks that made the calls end with their answers.
    while pool.status().available == 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn pool_of_one_replaces_its_connection() {
    let mut server = RedisServer::start();
    let pool = pool(&server.url());
    let store = options()
        .breaker(NonZeroU32::MIN)
        .pool(pool.clone())
        .unwrap();
    assert_eq!(check(&store).await.unwrap(), 999);
    server.kill();
    assert!(check(&store).await.is_err());
    server.start_again();
    until_answered(&store).await;
    assert_eq!(pool.status().size, 1);

    // A connection that is in doubt serves until the next is there, which is made at once.
    server.command("REPLICAOF 127.0.0.1 1").unwrap();
    let error = check(&store).await.unwrap_err();
    assert!(
        matches!(error, RedisStoreError::Refused { .. }),
        "{error:?}"
    );
    server.command("REPLICAOF NO ONE").unwrap();
    until_answered(&store).await;
    // The old one has answered that if the pool has no other yet.
    let replaced = async {
        while pool.status().size == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, replaced).await.unwrap();
    assert_eq!(check(&store).await.unwrap(), 999);
}

#[tokio::test]
async fn closed_pool_is_a_permanent_error() {
    let server = RedisServer::start();
    let pool = pool(&server.url());
    pool.close();
    let error = check(&options().pool(pool).unwrap()).await.unwrap_err();
    assert!(
        matches!(error, RedisStoreError::Connect { .. }) && !error.is_transient(),
        "{error:?}"
    );
}
