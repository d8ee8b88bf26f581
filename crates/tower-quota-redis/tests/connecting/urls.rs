//! Tests connecting, and servers that are away or silent.

use core::num::NonZeroUsize;
use std::error::Error;
use std::net::TcpListener;
use std::time::Duration;

use tower_quota_core::{Clock, MonotonicClock, Store};
use tower_quota_dev::{Fault, FaultProxy, RedisCluster, RedisServer};
use tower_quota_redis::{RedisConfigError, RedisStore, RedisStoreError};

use crate::common::{
    TEST_TIMEOUT, check, entries, options, silences_cost_no_decision, store_on, until_answered,
};

/// The time that a slow machine may take beyond a deadline.
const MARGIN: Duration = Duration::from_secs(10);
const SHORT: Duration = Duration::from_millis(100);

/// Returns the whole text of an error, with the causes.
fn shown(error: &RedisStoreError) -> String {
    let mut text = format!("{error} {error:?}");
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(" {error} {error:?}");
        cause = error.source();
    }
    text
}

#[tokio::test]
async fn url_and_client_share_counters() {
    let server = RedisServer::start();
    let by_url = store_on(&server).await;
    let client = redis::Client::open(server.url()).unwrap();
    let by_client = options().client(client).await.unwrap();

    assert_eq!(check(&by_url).await.unwrap(), 999);
    assert_eq!(check(&by_client).await.unwrap(), 998);
    assert_eq!(entries(&server).len(), 1);
}

#[tokio::test]
async fn node_of_cluster_is_wrong_single_server() {
    let cluster = RedisCluster::start();
    for number in 0..3 {
        let node = cluster.node(number);
        let error = options().connect(&node.url()).await.unwrap_err();
        let wrong = matches!(
            error,
            RedisStoreError::Config(RedisConfigError::ClusterNode { .. })
        );
        assert!(wrong && !error.is_transient(), "{error:?}");
        let url = format!("redis+cluster://127.0.0.1:{}", node.port());
        assert!(error.to_string().contains(&url), "{error}");
        let store = options().connect(&url).await.unwrap();
        assert!(check(&store).await.is_ok());
        // Without a call at the start, a decision about another node's slot finds the mistake.
        let lazy = options().connect_lazily().connect(&node.url()).await;
        match check(&lazy.unwrap()).await {
            Ok(_) => {}
            Err(RedisStoreError::Config(RedisConfigError::ClusterNode { .. })) => {}
            Err(error) => panic!("{error:?}"),
        }
    }
}

#[tokio::test]
async fn missing_password_is_found_when_connecting() {
    let server = RedisServer::start();
    server.command("CONFIG SET requirepass secret").unwrap();
    let error = RedisStore::connect(&server.url()).await.unwrap_err();
    assert!(
        matches!(error, RedisStoreError::Refused { .. }) && !error.is_transient(),
        "{error:?}"
    );
    let address = format!("127.0.0.1:{}", server.port());
    assert!(
        error.to_string().contains(&address) && shown(&error).contains("NOAUTH"),
        "{}",
        shown(&error)
    );
    assert!(
        RedisStore::connect(&format!("redis://:secret@127.0.0.1:{}", server.port()))
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn connection_closed_in_silence_costs_no_decision() {
    let server = RedisServer::start();
    let store = options()
        .connections(NonZeroUsize::new(2).unwrap())
        .connect(&server.url())
        .await
        .unwrap();
    silences_cost_no_decision(&server, &store).await;
}

#[tokio::test]
async fn slow_handshake_connects_with_default_options() {
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    // Delay connections for longer than the default deadline, like a TLS handshake.
    proxy.inflict(Fault::SlowStart(Duration::from_millis(60)));
    let store = RedisStore::connect(&proxy.url()).await.unwrap();
    until_answered(&store).await;
    let store = RedisStore::options()
        .client(redis::Client::open(proxy.url()).unwrap())
        .await
        .unwrap();
    until_answered(&store).await;
}

#[tokio::test]
async fn connect_timeout_bounds_all_connections() {
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    proxy.inflict(Fault::SlowStart(Duration::from_millis(300)));
    let options = options()
        .deadline(SHORT)
        .connect_timeout(Duration::from_secs(1));
    // Each connection is within the timeout, but four in a row would exceed it.
    let error = options
        .connections(NonZeroUsize::new(4).unwrap())
        .connect(&proxy.url())
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("127.0.0.1") && shown(&error).contains("connect timeout"),
        "{}",
        shown(&error)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_handshakes_connect_to_a_cluster() {
    let cluster = RedisCluster::start();
    let proxy = FaultProxy::to(cluster.node(0).port());
    proxy.inflict(Fault::SlowStart(Duration::from_millis(600)));
    let store = RedisStore::options()
        .deadline(TEST_TIMEOUT)
        .cluster([proxy.url()])
        .await
        .unwrap();
    assert_eq!(check(&store).await.unwrap(), 999);
}

#[tokio::test]
async fn slow_handshake_does_not_delay_recovery() {
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    let store = options()
        .deadline(SHORT)
        .connect_lazily()
        .connect(&proxy.url())
        .await
        .unwrap();
    until_answered(&store).await;
    // Drop all packets on existing connections, like a host that dies.
    proxy.inflict(Fault::SlowStart(TEST_TIMEOUT));
    proxy.cut();
    while check(&store).await.is_ok() {}
    let clock = MonotonicClock::new();
    let began = clock.now();
    proxy.heal();
    until_answered(&store).await;
    assert!(
        clock.now().since(began) < TEST_TIMEOUT / 2,
        "another attempt begins beside the one that hangs"
    );
}

#[tokio::test]
async fn default_deadline_is_50_ms() {
    let server = RedisServer::start();
    let address = format!("127.0.0.1:{}", server.port());
    let store = RedisStore::options().connect(&server.url()).await.unwrap();
    server.pause();
    let error = check(&store).await.unwrap_err();
    server.resume();
    assert!(
        matches!(error, RedisStoreError::Deadline { after, .. } if after == Duration::from_millis(50)),
        "{error:?}"
    );
    assert!(error.to_string().contains(&address), "{error}");
}

#[test]
fn connections_outlive_callers_on_a_named_runtime() {
    let runtime = || {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap()
    };
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    let lasting = runtime();
    let caller = runtime();
    let named = options().runtime(lasting.handle().clone());
    let store = caller.block_on(named.connect(&proxy.url())).unwrap();
    assert_eq!(caller.block_on(check(&store)).unwrap(), 999);
    drop(caller);
    assert_eq!(runtime().block_on(check(&store)).unwrap(), 998);
    assert_eq!(proxy.connections(), 1);
}

#[test]
fn abandoned_call_ends_on_a_named_runtime() {
    let lasting = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    // This runtime stops after the check, with its timers.
    let caller = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    let named = options()
        .deadline(Duration::from_millis(200))
        .runtime(lasting.handle().clone());
    let store = caller.block_on(named.connect(&proxy.url())).unwrap();
    proxy.inflict(Fault::Mute);
    let abandoned = async { tokio::time::timeout(Duration::from_millis(5), check(&store)).await };
    assert!(caller.block_on(abandoned).is_err());
    assert!(lasting.block_on(store.close(TEST_TIMEOUT)));
    assert_eq!(store.stats().calls_under_way, 0);
}

#[test]
fn ended_runtime_fails_decisions_at_once() {
    let lasting = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let caller = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let server = RedisServer::start();
    let named = options()
        .deadline(10 * TEST_TIMEOUT)
        .runtime(lasting.handle().clone());
    let store = caller.block_on(named.connect(&server.url())).unwrap();
    assert_eq!(caller.block_on(check(&store)).unwrap(), 999);
    drop(lasting);
    for _ in 0..100 {
        let ended =
            caller.block_on(async { tokio::time::timeout(TEST_TIMEOUT, check(&store)).await });
        let error = ended.unwrap().unwrap_err();
        assert!(
            matches!(error, RedisStoreError::Connect { .. }) && shown(&error).contains("has ended"),
            "{error:?}"
        );
    }
    assert_eq!(store.stats().queued, 0);
}

#[tokio::test]
async fn passwords_are_used_and_never_shown() {
    let server = RedisServer::start_with(&["--requirepass", "open-sesame"]);
    let address = format!("127.0.0.1:{}", server.port());
    let store = options()
        .connect(&format!("redis://:open-sesame@{address}/"))
        .await
        .unwrap();
    assert_eq!(check(&store).await.unwrap(), 999);
    assert!(!format!("{store:?}").contains("open-sesame"));

    for wrong in [
        format!("redis://:open-barley@{address}/"),
        format!("redis://open-barley:open-barley@{address}/"),
    ] {
        let error = options().connect(&wrong).await.unwrap_err();
        assert!(
            matches!(error, RedisStoreError::Connect { .. }) && !error.is_transient(),
            "{error:?}"
        );
        assert!(
            error.to_string().contains(&address) && !shown(&error).contains("barley"),
            "{}",
            shown(&error)
        );
    }
}

#[tokio::test]
async fn unknown_database_is_an_error_of_connecting() {
    let server = RedisServer::start();
    let store = options()
        .connect(&format!("{}3", server.url()))
        .await
        .unwrap();
    assert_eq!(check(&store).await.unwrap(), 999);
    let error = options()
        .connect(&format!("{}777", server.url()))
        .await
        .unwrap_err();
    assert!(
        matches!(error, RedisStoreError::Connect { .. }) && !error.is_transient(),
        "{error:?}"
    );
    assert!(
        error
            .to_string()
            .contains(&format!("127.0.0.1:{}", server.port())),
        "{error}"
    );
}

#[tokio::test]
async fn invalid_options_are_named() {
    for url in [
        "http://user:hunter2@host/",
        "user:hunter2@host",
        "redis://user:hunter2@host:port/",
        "redis://:hunter2@/x",
    ] {
        let error = options().connect(url).await.unwrap_err();
        assert!(
            matches!(error, RedisStoreError::Config(RedisConfigError::Url { .. })),
            "{url}: {error:?}"
        );
        assert!(!shown(&error).contains("hunter2"), "{}", shown(&error));
    }
    let server = RedisServer::start();
    let error = options()
        .prefix("a b")
        .connect(&server.url())
        .await
        .unwrap_err();
    assert!(
        matches!(error, RedisStoreError::Config(RedisConfigError::Prefix(_))),
        "{error:?}"
    );
    let error = options()
        .deadline(Duration::ZERO)
        .connect(&server.url())
        .await
        .unwrap_err();
    assert!(
        matches!(
            error,
            RedisStoreError::Config(RedisConfigError::ZeroDeadline)
        ),
        "{error:?}"
    );
    let error = options()
        .connect_timeout(Duration::ZERO)
        .connect(&server.url())
        .await
        .unwrap_err();
    assert!(
        matches!(
            error,
            RedisStoreError::Config(RedisConfigError::ZeroConnectTimeout)
        ),
        "{error:?}"
    );
    assert!(
        options()
            .cluster(["redis://host/", "rediss://host/"])
            .await
            .is_err()
    );
    assert!(
        options()
            .sentinel(Vec::<String>::new(), "mymaster")
            .await
            .is_err()
    );
    let error = options()
        .secret("short")
        .connect(&server.url())
        .await
        .unwrap_err();
    assert!(
        matches!(
            error,
            RedisStoreError::Config(RedisConfigError::ShortSecret { bytes: 5 })
        ),
        "{error:?}"
    );
}

#[tokio::test]
async fn longest_durations_are_accepted() {
    let server = RedisServer::start();
    let options = RedisStore::options()
        .deadline(Duration::MAX)
        .connect_timeout(Duration::MAX);
    let store = options.connect(&server.url()).await.unwrap();
    assert_eq!(check(&store).await.unwrap(), 999);
    let address = store.locator().unwrap().locate("news").await.unwrap();
    let port = server.port();
    assert_eq!(address.addr().to_string(), format!("127.0.0.1:{port}"));
    assert!(store.close(Duration::MAX).await);
}

#[tokio::test]
async fn refused_connection_fails_at_once() {
    let (address, listener) = silent_listener();
    drop(listener);
    let error = options()
        .connect(&format!("redis://:hunter2@{address}/"))
        .await
        .unwrap_err();
    assert!(
        matches!(error, RedisStoreError::Connect { .. }) && error.is_transient(),
        "{error:?}"
    );
    assert!(
        error.to_string().contains(&address) && !shown(&error).contains("hunter2"),
        "{}",
        shown(&error)
    );
}

#[tokio::test]
async fn silent_server_fails_at_the_connect_timeout() {
    let (address, _listener) = silent_listener();
    let clock = MonotonicClock::new();
    let started = clock.now();
    let error = options()
        .connect_timeout(SHORT)
        .connect(&format!("redis://:hunter2@{address}/"))
        .await
        .unwrap_err();
    let taken = clock.now().since(started);
    assert!(taken >= SHORT && taken < SHORT + MARGIN, "{taken:?}");
    assert!(
        matches!(error, RedisStoreError::Connect { .. }) && error.is_transient(),
        "{error:?}"
    );
    assert!(
        error.to_string().contains(&address) && !shown(&error).contains("hunter2"),
        "{}",
        shown(&error)
    );
}

/// Returns a server that accepts clients and never answers.
fn silent_listener() -> (String, TcpListener) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    (listener.local_addr().unwrap().to_string(), listener)
}
