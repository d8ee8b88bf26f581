//! Tests servers with TLS.

use std::fs;

use tower_quota_core::{Charge, Quota, Store};
use tower_quota_dev::{RedisCluster, RedisServer, TlsFiles};
use tower_quota_redis::RedisStoreError;

use crate::common::{calls, options, user};

const QUOTA: Quota = Quota::per_hour(10);

#[tokio::test]
async fn trusted_server_is_used() {
    let files = TlsFiles::new();
    let server = RedisServer::start_tls(&files);
    let trust = fs::read(files.certificate()).unwrap();
    let ann = user("ann");
    for (left, query) in [(9, ""), (8, "?protocol=resp3")] {
        let url = format!("rediss://localhost:{}/{query}", server.port());
        let store = options()
            .root_certificates(trust.clone())
            .connect(&url)
            .await
            .unwrap();
        let decision = store
            .check(&[Charge::new("hour", &QUOTA, &ann)])
            .await
            .unwrap();
        assert_eq!(decision.statuses()[0].remaining(), left);
    }
}

#[tokio::test]
async fn server_that_requires_certificate_is_used() {
    let files = TlsFiles::new();
    let server = RedisServer::start_mutual_tls(&files);
    let pem = fs::read(files.certificate()).unwrap();
    let key = fs::read(files.key()).unwrap();
    let url = format!("rediss://localhost:{}/", server.port());
    let anonymous = options().root_certificates(pem.clone());
    assert!(anonymous.clone().connect(&url).await.is_err());
    let store = anonymous.client_certificate(pem, key).connect(&url).await;
    let (store, ann) = (store.unwrap(), user("ann"));
    let decision = store.check(&[Charge::new("hour", &QUOTA, &ann)]).await;
    assert!(decision.unwrap().is_allowed());
}

#[tokio::test]
async fn each_scheme_of_tls_uses_certificates() {
    let files = TlsFiles::new();
    let server = RedisServer::start_mutual_tls(&files);
    let pem = fs::read(files.certificate()).unwrap();
    let options = options()
        .root_certificates(pem.clone())
        .client_certificate(pem, fs::read(files.key()).unwrap());
    for scheme in ["rediss", "REDISS", "valkeys"] {
        let url = format!("{scheme}://localhost:{}/", server.port());
        let store = options.clone().connect(&url).await;
        assert!(store.is_ok(), "{scheme}: {store:?}");
    }
}

#[tokio::test]
async fn unusable_certificates_are_named() {
    let files = TlsFiles::new();
    let pem = fs::read(files.certificate()).unwrap();
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    for (wrong, option) in [
        ("no roots", options().root_certificates("no certificate")),
        ("broken roots", options().root_certificates(broken)),
        ("no key", options().client_certificate(pem, "no key")),
    ] {
        for url in ["rediss://localhost:1/", "rediss+cluster://localhost:1"] {
            let error = option.clone().connect_lazily().connect(url).await;
            let error = error.unwrap_err();
            assert!(
                error.to_string().contains("certificate"),
                "{wrong}: {error}"
            );
            assert!(!error.to_string().contains("URL"), "{wrong}: {error}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cluster_that_requires_certificates_is_used() {
    let files = TlsFiles::new();
    let cluster = RedisCluster::start_tls(&files);
    for number in 0..6 {
        let require = "CONFIG SET tls-auth-clients yes";
        assert_eq!(cluster.node(number).command(require).unwrap(), "+OK\r\n");
    }
    let pem = fs::read(files.certificate()).unwrap();
    let key = fs::read(files.key()).unwrap();
    let anonymous = options().root_certificates(pem.clone());
    let nodes = &cluster.tls_urls()[..1];
    assert!(anonymous.clone().cluster(nodes).await.is_err());
    let store = anonymous.client_certificate(pem, key).cluster(nodes).await;
    let store = store.unwrap();
    for number in 0..50 {
        let key = user(&format!("user {number}"));
        let decision = store.check(&[Charge::new("hour", &QUOTA, &key)]).await;
        assert!(decision.unwrap().is_allowed());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trusted_cluster_is_used() {
    let files = TlsFiles::new();
    let cluster = RedisCluster::start_tls(&files);
    let trust = fs::read(files.certificate()).unwrap();
    // The store finds the other nodes through the given node, and connects to them over TLS too.
    let store = options()
        .root_certificates(trust)
        .cluster(&cluster.tls_urls()[..1])
        .await
        .unwrap();
    for i in 0..50 {
        let key = user(&format!("user {i}"));
        assert!(
            store
                .check(&[Charge::new("hour", &QUOTA, &key)])
                .await
                .unwrap()
                .is_allowed()
        );
    }
    for node in 0..3 {
        assert!(
            calls(cluster.node(node), "evalsha") > 0,
            "node {node} was not asked"
        );
    }
    let error = options().cluster(cluster.tls_urls()).await.unwrap_err();
    assert!(
        matches!(error, RedisStoreError::Connect { .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn untrusted_server_is_an_error() {
    let files = TlsFiles::new();
    let server = RedisServer::start_tls(&files);
    let url = format!("rediss://localhost:{}/", server.port());
    // The system does not trust the certificate, and another certificate does not match.
    let another = fs::read(TlsFiles::new().certificate()).unwrap();
    for options in [options(), options().root_certificates(another)] {
        let error = options.connect(&url).await.unwrap_err();
        assert!(
            matches!(error, RedisStoreError::Connect { .. }),
            "{error:?}"
        );
    }
    // The server refuses plain text.
    assert!(
        options()
            .connect(&format!("redis://localhost:{}/", server.port()))
            .await
            .is_err()
    );
}
