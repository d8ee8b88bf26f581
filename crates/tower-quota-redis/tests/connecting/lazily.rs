//! Tests services that start before their server.

use std::time::Duration;

use tower_quota_dev::{Fault, FaultProxy, RedisCluster, RedisSentinel, RedisServer};
use tower_quota_redis::{RedisOptions, RedisStoreError};

use crate::common::{TEST_TIMEOUT, check, options, until_answered};

fn lazily() -> RedisOptions {
    options().connect_lazily()
}

#[tokio::test]
async fn late_server_is_found() {
    let mut server = RedisServer::start();
    server.kill();
    let store = lazily().connect(&server.url()).await.unwrap();
    // Five failures open the breaker, as after a later outage.
    for _ in 0..5 {
        let error = check(&store).await.unwrap_err();
        assert!(
            matches!(error, RedisStoreError::Connect { .. }) && error.is_transient(),
            "{error:?}"
        );
    }
    let error = check(&store).await.unwrap_err();
    assert!(
        matches!(error, RedisStoreError::BreakerOpen { .. }) && error.is_transient(),
        "{error:?}"
    );
    server.start_again();
    until_answered(&store).await;
    assert_eq!(check(&store).await.unwrap(), 999);
}

#[tokio::test]
async fn constructor_does_not_wait_for_server() {
    const DEADLINE: Duration = Duration::from_millis(100);
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    proxy.inflict(Fault::Stall);
    // Use deadlines that are long enough to notice a wait.
    drop(
        lazily()
            .deadline(10 * TEST_TIMEOUT)
            .connect_timeout(10 * TEST_TIMEOUT)
            .connect(&proxy.url())
            .await
            .unwrap(),
    );
    let store = lazily()
        .deadline(DEADLINE)
        .connect(&proxy.url())
        .await
        .unwrap();
    let error = check(&store).await.unwrap_err();
    assert!(
        matches!(error, RedisStoreError::Connect { .. }) && error.is_transient(),
        "{error:?}"
    );
    proxy.heal();
    until_answered(&store).await;
}

#[tokio::test]
async fn present_server_is_connected_before_requests() {
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    let store = lazily().connect(&proxy.url()).await.unwrap();
    while proxy.connections() == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(check(&store).await.unwrap(), 999);
    assert_eq!(proxy.connections(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn late_sentinels_and_clusters_are_found() {
    let mut group = RedisSentinel::start();
    let before_its_primary = {
        group.kill(0);
        lazily()
            .sentinel(group.urls(), RedisSentinel::MASTER_NAME)
            .await
            .unwrap()
    };
    group.wait_for_promotion(1);
    until_answered(&before_its_primary).await;

    let cluster = RedisCluster::start();
    let proxies: Vec<FaultProxy> = (0..3)
        .map(|node| FaultProxy::to(cluster.node(node).port()))
        .collect();
    proxies
        .iter()
        .for_each(|proxy| proxy.inflict(Fault::Refuse));
    let store = lazily()
        .cluster(proxies.iter().map(FaultProxy::url))
        .await
        .unwrap();
    assert!(check(&store).await.is_err());
    proxies.iter().for_each(FaultProxy::heal);
    until_answered(&store).await;
}

/// The handshake takes longer than a deadline, so each decision waits for the end of an attempt in vain.
#[tokio::test]
async fn slow_refusal_of_password_is_reported() {
    let server = RedisServer::start();
    server.command("CONFIG SET requirepass password").unwrap();
    let proxy = FaultProxy::to(server.port());
    proxy.inflict(Fault::SlowStart(Duration::from_millis(120)));
    let url = format!("redis://:another@127.0.0.1:{}/", proxy.port());
    let store = lazily()
        .deadline(Duration::from_millis(50))
        .connect(&url)
        .await
        .unwrap();
    let mut error = check(&store).await.unwrap_err();
    while !matches!(error, RedisStoreError::BreakerOpen { .. }) {
        assert!(
            matches!(error, RedisStoreError::Connect { .. }),
            "nothing was written: {error:?}"
        );
        error = check(&store).await.unwrap_err();
    }
    assert!(
        error.to_string().contains("Password authentication failed"),
        "{error}"
    );
}
