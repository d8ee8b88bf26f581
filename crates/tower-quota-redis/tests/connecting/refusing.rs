//! Tests servers that answer with errors.

use core::num::NonZeroU32;
use core::time::Duration;

use tower_quota_dev::{Fault, FaultProxy, RedisServer};
use tower_quota_redis::{RedisConfigError, RedisStore, RedisStoreError};

use crate::common::{TEST_TIMEOUT, check, look_at, options, store_on, until_answered};

async fn replica_of(primary: &RedisServer) -> RedisServer {
    let port = primary.port().to_string();
    let replica = RedisServer::start_with(&["--replicaof", "127.0.0.1", &port]);
    // Wait for the link to the primary, because a replica without it is still loading.
    while !replica
        .command("INFO replication")
        .unwrap()
        .contains("master_link_status:up")
    {
        tokio::task::yield_now().await;
    }
    replica
}

#[tokio::test]
async fn replica_is_wrong_single_server() {
    let primary = RedisServer::start();
    let replica = replica_of(&primary).await;
    let error = options().connect(&replica.url()).await.unwrap_err();
    let wrong = matches!(
        error,
        RedisStoreError::Config(RedisConfigError::Replica { .. })
    );
    assert!(wrong && error.to_string().contains("primary"), "{error:?}");
    assert_eq!(check(&store_on(&primary).await).await.unwrap(), 999);
}

// The start-up checks take two round trips, which exceed the default deadline.
#[tokio::test]
async fn distant_server_is_checked_at_start() {
    let primary = RedisServer::start();
    let replica = replica_of(&primary).await;
    let proxies = [&primary, &replica].map(|server| FaultProxy::to(server.port()));
    proxies
        .iter()
        .for_each(|proxy| proxy.inflict(Fault::Delay(Duration::from_millis(30))));
    RedisStore::connect(&proxies[0].url()).await.unwrap();
    let error = RedisStore::connect(&proxies[1].url()).await.unwrap_err();
    let is_replica = matches!(
        error,
        RedisStoreError::Config(RedisConfigError::Replica { .. })
    );
    assert!(is_replica, "{error:?}");
    primary.command("ACL SETUSER default -psetex").unwrap();
    let error = RedisStore::connect(&proxies[0].url()).await.unwrap_err();
    assert!(
        matches!(error, RedisStoreError::Refused { .. }) && !error.is_transient(),
        "{error:?}"
    );
}

/// Runs an endless script on a server, which then answers every call at once with an error.
#[tokio::test]
async fn busy_server_opens_breaker() {
    let server = RedisServer::start_with(&["--lua-time-limit", "1"]);
    let store = options()
        .breaker(NonZeroU32::MIN)
        .connect(&server.url())
        .await
        .unwrap();
    let port = server.port();
    let endless = std::thread::spawn(move || {
        let client = redis::Client::open(format!("redis://127.0.0.1:{port}/")).unwrap();
        let mut connection = client.get_connection().unwrap();
        let script = redis::cmd("EVAL").arg("while true do end").arg(0).clone();
        script.query::<()>(&mut connection).unwrap_err();
    });
    let errors = errors_until_open(&store).await;
    // Compare the beginning of the server's text, because its name may be Valkey.
    let busy = errors
        .iter()
        .find(|error| error.to_string().contains("the call: BUSY "));
    assert!(
        busy.is_some_and(RedisStoreError::is_transient),
        "{errors:?}"
    );
    server.command("SCRIPT KILL").unwrap();
    endless.join().unwrap();
    until_answered(&store).await;
}

/// Loads data on a server, which then answers every call at once with an error.
#[tokio::test]
async fn loading_server_opens_breaker() {
    let primary = RedisServer::start_with(&["--repl-diskless-sync-delay", "0"]);
    let fill = "for number = 1, 5000 do redis.call('SET', number, '') end";
    let mut connection = look_at(&primary);
    let filled = redis::cmd("EVAL").arg(fill).arg(0).query(&mut connection);
    let () = filled.unwrap();
    // The server loads for at least five seconds, and answers after each key.
    let slowly = ["--key-load-delay", "1000"];
    let often = ["--loading-process-events-interval-bytes", "1024"];
    let server = RedisServer::start_with(&[slowly, often].concat());
    let store = options()
        .breaker(NonZeroU32::MIN)
        .connect(&server.url())
        .await
        .unwrap();
    let port = primary.port();
    server
        .command(&format!("REPLICAOF 127.0.0.1 {port}"))
        .unwrap();
    let errors = errors_until_open(&store).await;
    let loading = errors
        .iter()
        .find(|error| error.to_string().contains("the call: LOADING "));
    assert!(
        loading.is_some_and(RedisStoreError::is_transient),
        "{errors:?}"
    );
    server.command("REPLICAOF NO ONE").unwrap();
    until_answered(&store).await;
}

/// Checks that the error names the server. The server explains the refusal, but the client only
/// reports the closed connection.
#[tokio::test]
async fn server_without_free_connections_is_named() {
    let server = RedisServer::start_with(&["--maxclients", "1"]);
    let only = look_at(&server);
    let error = options().connect(&server.url()).await.unwrap_err();
    assert!(
        matches!(error, RedisStoreError::Connect { .. }) && error.is_transient(),
        "{error:?}"
    );
    let address = format!("127.0.0.1:{}", server.port());
    assert!(error.to_string().contains(&address), "{error}");
    let lazy = options().connect_lazily();
    let store = lazy.connect(&server.url()).await.unwrap();
    assert!(check(&store).await.is_err());
    drop(only);
    until_answered(&store).await;
}

pub(crate) async fn errors_until_open(store: &RedisStore) -> Vec<RedisStoreError> {
    let until_open = async {
        let mut errors = Vec::new();
        while !matches!(errors.last(), Some(RedisStoreError::BreakerOpen { .. })) {
            errors.extend(check(store).await.err());
        }
        errors
    };
    tokio::time::timeout(TEST_TIMEOUT, until_open)
        .await
        .unwrap()
}
