//! Tests connections from a pool.

use core::num::NonZeroU32;
use core::time::Duration;

use deadpool_redis::{Config, Pool, Runtime};
use tower_quota_core::Store as _;
use tower_quota_dev::{Fault, FaultProxy, RedisServer};
use tower_quota_redis::{RedisConfigError, RedisStore, RedisStoreError};

use crate::common::{check, entries, options, silences_cost_no_decision, store_on, until_answered};

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
async fn each_call_returns_its_connection() {
    let server = RedisServer::start();
    let pool = pool(&server.url());
    let store = options().pool(pool.clone()).unwrap();
    for i in 0..50 {
        assert_eq!(check(&store).await.unwrap(), 999 - i);
        // The pool has one connection, and hands it out to this test in turn.
        drop(pool.get().await.unwrap());
    }
    assert_eq!(pool.status().size, 1);
}

#[tokio::test]
async fn calls_wait_for_connection_of_pool() {
    let server = RedisServer::start();
    let pool = pool(&server.url());
    let taken = pool.get().await.unwrap();
    let store = RedisStore::options().pool(pool.clone()).unwrap();
    for _ in 0..4 {
        let error = check(&store).await.unwrap_err();
        assert!(
            matches!(error, RedisStoreError::Connect { .. }) && error.is_transient(),
            "{error:?}"
        );
        assert!(
            error.to_string().contains("handed out no connection"),
            "{error}"
        );
        assert!(pool.status().waiting <= 1, "{:?}", pool.status());
    }
    check(&store).await.unwrap_err();
    let open = check(&store).await.unwrap_err();
    assert!(
        matches!(open, RedisStoreError::BreakerOpen { .. }),
        "{open:?}"
    );
    assert!(
        open.to_string().contains("handed out no connection"),
        "{open}"
    );
    drop(taken);
    until_answered(&store).await;
    assert_eq!(
        check(&store).await.unwrap(),
        999,
        "the late decision was not sent"
    );
}

/// The pool checks its connection before each call, so only the call itself may go unanswered.
#[tokio::test]
async fn unanswered_call_leaves_pool_at_once() {
    let server = RedisServer::start();
    let pool = pool(&server.url());
    let store = RedisStore::options().pool(pool.clone()).unwrap();
    until_answered(&store).await;
    server.command("CLIENT PAUSE 60000 WRITE").unwrap();
    let error = check(&store).await.unwrap_err();
    assert!(
        matches!(error, RedisStoreError::Deadline { .. }),
        "{error:?}"
    );
    while pool.status().size > 0 {
        tokio::task::yield_now().await;
    }
    assert!(
        !store.close(Duration::ZERO).await,
        "the call is still unanswered"
    );
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

    // The store drops the connections to the replica.
    server.command("REPLICAOF 127.0.0.1 1").unwrap();
    let error = check(&store).await.unwrap_err();
    assert!(
        matches!(error, RedisStoreError::Refused { .. }),
        "{error:?}"
    );
    server.command("REPLICAOF NO ONE").unwrap();
    until_answered(&store).await;
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

#[tokio::test]
async fn pool_and_url_share_counters() {
    let server = RedisServer::start();
    let by_url = store_on(&server).await;
    let by_pool = options().pool(pool(&server.url())).unwrap();
    assert_eq!(check(&by_url).await.unwrap(), 999);
    assert_eq!(check(&by_pool).await.unwrap(), 998);
    assert_eq!(entries(&server).len(), 1);
}

#[tokio::test]
async fn idle_close_of_pooled_connection_fails_no_decision() {
    let server = RedisServer::start();
    let store = options().pool(pool(&server.url())).unwrap();
    silences_cost_no_decision(&server, &store).await;
}

#[tokio::test]
async fn slow_handshake_connects_through_pool() {
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    // Delay connections for longer than the default deadline, like a TLS handshake.
    proxy.inflict(Fault::SlowStart(Duration::from_millis(60)));
    let store = RedisStore::options().pool(pool(&proxy.url())).unwrap();
    until_answered(&store).await;
}

#[tokio::test]
async fn silent_server_behind_pool_meets_deadline() {
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    proxy.inflict(Fault::SlowStart(Duration::from_secs(60)));
    let store = RedisStore::options().pool(pool(&proxy.url())).unwrap();
    let error = check(&store).await.unwrap_err();
    assert!(
        matches!(error, RedisStoreError::Connect { .. }) && error.is_transient(),
        "{error:?}"
    );
    assert!(error.to_string().contains("the pool"), "{error}");
    let other = store.locator();
    assert!(
        matches!(other, Err(RedisConfigError::PoolAddress)),
        "{other:?}"
    );
}
