//! Tests credentials that change while a store is in use.

use core::time::Duration;
use std::error::Error;
use std::io;
use std::sync::{Arc, Mutex};

use redis::{ErrorKind, RedisError};
use tower_quota_core::{Clock, MonotonicClock};
use tower_quota_dev::{RedisCluster, RedisSentinel, RedisServer};
use tower_quota_redis::{Credentials, RedisStore, RedisStoreError};

use crate::common::{TEST_TIMEOUT, calls, check, options, until_answered};
use crate::refusing::errors_until_open;

/// The lifetime of a token, which the store renews after a second, the shortest pause.
const LIFETIME: Duration = Duration::from_secs(1);

/// A provider with the present token, or `None` during an outage.
#[derive(Clone)]
struct Cloud(Arc<Mutex<Option<u32>>>);

impl Cloud {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(Some(0))))
    }

    fn give(&self, token: Option<u32>) {
        *self.0.lock().unwrap() = token;
    }

    fn fetch(&self) -> io::Result<Credentials> {
        let token = *self.0.lock().unwrap();
        let token = token.ok_or_else(|| io::Error::other("the cloud is away"))?;
        Ok(Credentials::new(
            "limiter",
            format!("secret{token}"),
            LIFETIME,
        ))
    }

    async fn connect(&self, url: &str) -> Result<RedisStore, RedisStoreError> {
        let cloud = self.clone();
        let options = options().credentials(move || std::future::ready(cloud.fetch()));
        options.connect(url).await
    }
}

fn set_user(server: &RedisServer, rules: &str) {
    let reply = server.command(&format!("ACL SETUSER limiter {rules}"));
    let reply = reply.unwrap();
    assert!(reply.starts_with("+OK"), "{reply}");
}

/// Changes the password of a user every few hundred milliseconds, like a cloud that rotates tokens.
/// The former password is valid until the next change.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn credentials_change_under_load() {
    let (cluster, group, server) = (
        RedisCluster::start(),
        RedisSentinel::start(),
        RedisServer::start(),
    );
    let mut servers = vec![&server, group.server(0), group.server(1)];
    servers.extend((0..6).map(|number| cluster.node(number)));
    let set = |rules: &str| servers.iter().for_each(|server| set_user(server, rules));
    set("on ~* &* +@all >secret0");
    let sentinel = group.urls()[0].replace("redis:", "redis+sentinel:");
    let sentinel = sentinel.trim_end_matches('/');
    let urls = [
        server.url(),
        format!("{sentinel}/{}", RedisSentinel::MASTER_NAME),
        cluster.urls()[0].replace("redis:", "redis+cluster:"),
    ];
    let cloud = Cloud::new();
    let mut stores = Vec::new();
    for url in &urls {
        stores.push(cloud.connect(url).await.unwrap());
    }
    let clock = MonotonicClock::new();
    let mut asked = 0;
    let connected = calls(&server, "auth");
    for token in 1..=8 {
        set(&format!(">secret{token}"));
        cloud.give(Some(token));
        let changed = clock.now();
        while clock.now().since(changed) < LIFETIME / 2 {
            for store in &stores {
                let _ = check(store).await.unwrap();
                asked += 1;
            }
        }
        set(&format!("<secret{}", token - 1));
    }
    assert!(asked > 0);
    assert!(calls(&server, "auth") >= connected + 2);
    // The store replaces lost connections with the present token, because the server refuses former
    // tokens.
    for server in &servers {
        server.command("CLIENT KILL USER limiter").unwrap();
    }
    for store in &stores {
        until_answered(store).await;
    }
    let url = format!("redis://limiter:secret7@127.0.0.1:{}/", server.port());
    assert!(options().connect(&url).await.is_err());
}

#[tokio::test]
async fn missing_credentials_are_an_error() {
    let (server, cloud) = (RedisServer::start(), Cloud::new());
    set_user(&server, "on ~* &* +@all >secret0");
    cloud.give(None);
    let error = cloud.connect(&server.url()).await.unwrap_err();
    assert!(
        matches!(error, RedisStoreError::Connect { .. })
            && error.to_string().contains("the cloud is away"),
        "{error}"
    );
}

/// Returns the error of the Redis client behind an error of the store.
fn source_of(error: &RedisStoreError) -> &RedisError {
    error.source().unwrap().downcast_ref().unwrap()
}

// During an outage, most decisions only meet the open breaker.
#[tokio::test]
async fn open_breaker_names_rotated_password() {
    let server = RedisServer::start();
    set_user(&server, "on ~* &* +@all >secret0");
    let url = format!("redis://limiter:secret0@127.0.0.1:{}/", server.port());
    let store = options().connect(&url).await.unwrap();
    set_user(&server, ">secret1 <secret0");
    server.command("CLIENT KILL USER limiter").unwrap();
    let errors = errors_until_open(&store).await;
    let open = errors.last().unwrap();
    let shown = format!("{open} {open:?}");
    assert!(
        shown.contains("since: Password authentication failed"),
        "{shown}"
    );
    assert!(!shown.contains("secret"), "{shown}");
    assert_eq!(source_of(open).kind(), ErrorKind::AuthenticationFailed);
}

#[tokio::test]
async fn source_of_refused_password_is_redis_error() {
    let server = RedisServer::start();
    let url = format!("redis://limiter:secret@127.0.0.1:{}/", server.port());
    let error = options().connect(&url).await.unwrap_err();
    assert_eq!(source_of(&error).kind(), ErrorKind::AuthenticationFailed);
}

#[tokio::test]
async fn connection_outlives_missing_credentials() {
    let (server, cloud) = (RedisServer::start(), Cloud::new());
    set_user(&server, "on ~* &* +@all >secret0");
    let store = cloud.connect(&server.url()).await.unwrap();
    cloud.give(None);
    let clock = MonotonicClock::new();
    let away = clock.now();
    while clock.now().since(away) < 3 * LIFETIME {
        check(&store).await.unwrap();
    }
    server.command("CLIENT KILL USER limiter").unwrap();
    while check(&store).await.is_ok() {}
    let error = check(&store).await.unwrap_err();
    assert!(!error.to_string().contains("secret"), "no secret: {error}");
    cloud.give(Some(0));
    until_answered(&store).await;
}

// A connection logs in twice at the start, and stops renewals after a refusal.
#[tokio::test]
async fn refused_renewal_is_healed_by_next_connection() {
    let (server, cloud) = (RedisServer::start(), Cloud::new());
    set_user(&server, "on ~* &* +@all >secret0");
    let store = cloud.connect(&server.url()).await.unwrap();
    decide_until_logins(&store, &server, 2).await;
    cloud.give(Some(1));
    decide_until_logins(&store, &server, 3).await;
    check(&store).await.unwrap();
    set_user(&server, ">secret1");
    server.command("CLIENT KILL USER limiter").unwrap();
    until_answered(&store).await;
}

async fn decide_until_logins(store: &RedisStore, server: &RedisServer, logins: u64) {
    let clock = MonotonicClock::new();
    let began = clock.now();
    while calls(server, "auth") < logins {
        assert!(clock.now().since(began) < TEST_TIMEOUT);
        check(store).await.unwrap();
    }
}

#[tokio::test]
async fn locator_bounds_silent_provider() {
    let server = RedisServer::start();
    let store = RedisStore::options()
        .connect_timeout(Duration::from_millis(50))
        .credentials(std::future::pending::<io::Result<Credentials>>)
        .connect_lazily()
        .connect(&server.url())
        .await
        .unwrap();
    let locator = store.locator().unwrap();
    let located = tokio::time::timeout(TEST_TIMEOUT, locator.locate("key")).await;
    let error = located.expect("the locator gives up").unwrap_err();
    assert!(error.to_string().contains("credentials"), "{error}");
}
