//! Tests rules in a cluster, under sentinels, and on servers with TLS.

use std::collections::HashSet;
use std::fs;

use tower_quota::key::header;
use tower_quota_dev::{RedisCluster, RedisSentinel, RedisServer, TlsFiles};
use tower_quota_live::{
    BlockTarget, LiveOptions, MemoryRules, RedisRules, RuleStore, RuleStoreError, SharedTop,
};
use tower_quota_redis::RedisStore;

use crate::fixture::{Instance, eventually, new};
use crate::redis::announced;

/// Returns one URL of several servers.
fn joined(kind: &str, urls: &[String], end: &str) -> String {
    let hosts: Vec<&str> = urls
        .iter()
        .map(|url| url.split("://").nth(1).unwrap().trim_end_matches('/'))
        .collect();
    format!("{kind}://{}/{end}", hosts.join(","))
}

/// Puts documents on one connection, and follows them on another.
async fn follows_announcements(redis: impl Fn() -> RedisRules) {
    let (instance, writer) = (Instance::start(redis(), announced()).await, redis());
    // To connect to a cluster takes more time than a call has on a busy machine.
    eventually("the writer is connected", async || {
        writer.current().await.is_ok()
    })
    .await;
    for units in [5, 6] {
        let put = writer.put(None, new(units)).await.unwrap();
        instance.until_in_force(put.number).await;
    }
    assert_eq!(writer.history(9).await.unwrap().len(), 2);
    assert!(instance.live.state().is_healthy());
}

#[tokio::test]
async fn cluster_keeps_rules_in_one_slot() {
    let cluster = RedisCluster::start();
    let url = joined("redis+cluster", &cluster.urls(), "");
    follows_announcements(|| RedisRules::new(&url, "cluster").unwrap()).await;
}

/// Follows rules through a failover, which promotes the second server.
async fn follows_a_failover(fail_over: impl FnOnce(&mut RedisSentinel)) {
    let mut servers = RedisSentinel::start();
    let url = joined(
        "redis+sentinel",
        &servers.urls(),
        RedisSentinel::MASTER_NAME,
    );
    let redis = || RedisRules::new(&url, "failover").unwrap();
    let (instance, writer) = (Instance::start(redis(), announced()).await, redis());
    writer.put(None, new(5)).await.unwrap();
    instance.until_in_force(1).await;
    let replica = |command| servers.server(1).command(command).unwrap();
    eventually("it is replicated", async || {
        replica("HGET quota:rules:{failover}:state current").contains('1')
    })
    .await;

    fail_over(&mut servers);
    servers.wait_for_promotion(1);
    eventually("the next primary is written to", async || {
        writer.put(Some(1), new(6)).await.is_ok()
    })
    .await;
    instance.until_in_force(2).await;
    eventually("it has recovered", async || {
        instance.live.state().is_healthy()
    })
    .await;
}

#[tokio::test]
async fn crashed_primary_is_replaced() {
    follows_a_failover(|servers| servers.kill(0)).await;
}

#[tokio::test]
async fn demoted_primary_is_left() {
    follows_a_failover(|servers| servers.fail_over()).await;
}

#[tokio::test]
async fn service_has_one_name() {
    let server = RedisServer::start();
    let store = async |prefix: &str| {
        let options = RedisStore::options().prefix(prefix);
        options.connect(&server.url()).await.unwrap()
    };
    let rules = RedisRules::from_store(&store("orders:").await).unwrap();
    rules.put(None, new(500)).await.unwrap();
    let others = RedisRules::new(&server.url(), "orders").unwrap();
    assert_eq!(others.current().await.unwrap().unwrap().number, 1);
    for (prefix, reason) in [("quota", "name your service"), ("rl/api", "is not a name")] {
        let store = store(prefix).await;
        let errors = [
            RedisRules::from_store(&store).unwrap_err().to_string(),
            SharedTop::from_store(&store).unwrap_err().to_string(),
        ];
        assert!(
            errors.iter().all(|error| error.contains(reason)),
            "{errors:?}"
        );
    }
}

#[tokio::test]
async fn services_have_different_hashes_of_a_key() {
    let server = RedisServer::start();
    let hash = async |prefix: &str, secret: Option<&str>| {
        let mut options = RedisStore::options().prefix(prefix);
        if let Some(secret) = secret {
            options = options.secret(secret);
        }
        let counters = options.connect(&server.url()).await.unwrap();
        let options = LiveOptions::from_store(&counters).unwrap();
        let instance = Instance::start(MemoryRules::new(), options).await;
        instance.put(new(5)).await;
        instance.block(BlockTarget::Text("ann")).await;
        assert_eq!(instance.ask("ann").await, 403);
        instance.live.key_hash(&header("user").key_of("ann"))
    };
    let secret = Some("a secret of tests");
    let services = [
        hash("orders", None).await,
        hash("search", None).await,
        hash("orders", secret).await,
        hash("search", secret).await,
    ];
    // Two instances of a service agree.
    assert_eq!(hash("orders:", None).await, services[0]);
    assert_eq!(hash("orders", secret).await, services[2]);
    let different: HashSet<&String> = services.iter().collect();
    assert_eq!(different.len(), services.len(), "{services:?}");

    let counters = RedisStore::connect(&server.url()).await.unwrap();
    let unnamed = LiveOptions::from_store(&counters).unwrap_err().to_string();
    assert!(unnamed.contains("name your service"), "{unnamed}");
}

#[tokio::test]
async fn certificates_of_the_store_are_trusted() {
    let files = TlsFiles::new();
    let server = RedisServer::start_tls(&files);
    let url = format!("rediss://localhost:{}/", server.port());
    let trust = fs::read(files.certificate()).unwrap();
    let store = RedisStore::options()
        .prefix("tls")
        .root_certificates(trust)
        .connect(&url)
        .await
        .unwrap();
    follows_announcements(|| RedisRules::from_store(&store).unwrap()).await;

    // The system does not trust the certificate.
    let rules = RedisRules::new(&url, "tls").unwrap();
    eventually("the error names the certificate", async || {
        let error = rules.current().await.unwrap_err();
        let RuleStoreError::Unavailable { source, .. } = &error else {
            panic!("{error:?}")
        };
        source.to_string().contains("certificate")
    })
    .await;
}

#[tokio::test]
async fn cluster_with_tls_is_followed() {
    let files = TlsFiles::new();
    let cluster = RedisCluster::start_tls(&files);
    let trust = fs::read(files.certificate()).unwrap();
    let store = RedisStore::options()
        .prefix("tls")
        .root_certificates(trust)
        .cluster(cluster.tls_urls())
        .await
        .unwrap();
    follows_announcements(|| RedisRules::from_store(&store).unwrap()).await;
}
