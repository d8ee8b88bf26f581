//! Tests clusters with silent nodes, closed connections or nodes without names.

use core::time::Duration;

use tower_quota_core::{Charge, Key, Store};
use tower_quota_dev::{RedisCluster, RedisServer};
use tower_quota_redis::{RedisStore, RedisStoreError};

use crate::common::{HOUR, TEST_TIMEOUT, options, user};

/// The number of clients, enough for all partitions.
const CLIENTS: usize = 64;

async fn check_each(store: &RedisStore) -> Vec<RedisStoreError> {
    let mut errors = Vec::new();
    for number in 0..CLIENTS {
        let user = user(&format!("user {number}"));
        let charge = Charge::new("hour", &HOUR, &user).cost(0);
        errors.extend(store.check(&[charge]).await.err());
    }
    errors
}

/// Returns a client whose entry is on a node.
fn user_on(cluster: &RedisCluster, store: &RedisStore, node: usize) -> Key<'static> {
    let mut users = (0..CLIENTS).map(|number| user(&format!("user {number}")));
    let is_on_node =
        |user: &Key<'_>| cluster.owner(cluster.slot(&store.key_of(user))) == Some(node);
    users.find(is_on_node).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn error_names_silent_node_of_cluster() {
    let cluster = RedisCluster::start();
    let options = RedisStore::options().connect_timeout(TEST_TIMEOUT);
    let store = options
        .deadline(Duration::from_millis(100))
        .server_name("orders-cache")
        .cluster(cluster.urls())
        .await
        .unwrap();
    let user = user_on(&cluster, &store, 0);
    cluster.node(0).pause();
    let silent = format!("127.0.0.1:{} in orders-cache", cluster.node(0).port());
    let error = store.check(&[Charge::new("hour", &HOUR, &user)]).await;
    let text = error.unwrap_err().to_string();
    assert!(text.contains(&silent), "{text}");
    cluster.node(0).resume();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cluster_without_names_is_an_error() {
    let cluster = RedisCluster::start();
    for number in 0..6 {
        let by_name = "CONFIG SET cluster-preferred-endpoint-type hostname";
        assert_eq!(cluster.node(number).command(by_name).unwrap(), "+OK\r\n");
    }
    let error = options().cluster(cluster.urls()).await.unwrap_err();
    assert!(
        matches!(error, RedisStoreError::Connect { .. }) && !error.is_transient(),
        "{error:?}"
    );
    let text = error.to_string();
    assert!(text.contains("cluster-announce-hostname"), "{text}");
}

/// Closes idle connections like the `timeout` of a server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(
    clippy::disallowed_methods,
    reason = "a store looks at its connections after a silence"
)]
async fn idle_close_of_cluster_fails_no_decision() {
    let cluster = RedisCluster::start();
    let store = options().cluster(cluster.urls()).await.unwrap();
    for _ in 0..2 {
        for number in 0..6 {
            let closed = cluster.node(number).command("CLIENT KILL TYPE normal");
            closed.unwrap();
        }
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        let errors = check_each(&store).await;
        assert!(errors.is_empty(), "{errors:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locator_finds_owner_of_key() {
    let cluster = RedisCluster::start();
    let store = options().cluster(cluster.urls()).await.unwrap();
    for key in ["rules:{a}:state", "rules:{b}:state", "rules:{c}:state"] {
        let address = store.locator().unwrap().locate(key).await.unwrap();
        let owner = cluster.owner(cluster.slot(key)).unwrap();
        let port = cluster.node(owner).port();
        assert_eq!(
            address.addr().to_string(),
            format!("127.0.0.1:{port}"),
            "{key}"
        );
    }
}

#[tokio::test]
async fn plain_port_for_tls_is_named() {
    let server = RedisServer::start();
    let options = RedisStore::options().connect_timeout(Duration::from_millis(300));
    let url = format!("rediss://127.0.0.1:{}/", server.port());
    let text = options.connect(&url).await.unwrap_err().to_string();
    assert!(text.contains("does the port expect TLS?"), "{text}");
}
