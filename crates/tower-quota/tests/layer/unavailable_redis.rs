//! Responses over real sockets while a real Redis is killed and restarted.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use tokio::time::timeout;
use tower_quota::{
    Limit, MemoryStore, OnStoreFailure, Policy, Quota, RateLimitLayer, RedisStore, key,
};
use tower_quota_dev::RedisServer;
use tower_quota_testkit::ManualClock;

use crate::axum_apps::{ask, served};
use crate::fixture::WITH_X;
use crate::shared::{per_hour, per_minute, policy_of, secs};

/// The maximum time of a request, far above the deadline of a store call.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// A limit of 12 a minute in Redis, with a share of 2 per instance and its own prefix.
struct Setting {
    layer: RateLimitLayer<RedisStore>,
    local: MemoryStore,
    clock: ManualClock,
}

impl Setting {
    async fn new(redis: &RedisServer, policy: Policy, prefix: &str) -> Self {
        // A healthy server on a busy machine must not count as unavailable.
        let options = RedisStore::options().prefix(prefix).deadline(secs(1));
        let store = options.connect(&redis.url()).await.unwrap();
        let clock = ManualClock::default();
        let local = MemoryStore::with_clock(100, clock.clone());
        let layer = RateLimitLayer::new(store, policy)
            .local_store(local.clone())
            .headers(WITH_X);
        Self {
            layer,
            local,
            clock,
        }
    }

    async fn choosing(redis: &RedisServer, choice: OnStoreFailure) -> Self {
        let limit = per_minute("minute", 12).on_store_failure(choice);
        Self::new(redis, policy_of(limit).instances(6), &format!("{choice:?}")).await
    }
}

async fn app(layer: RateLimitLayer<RedisStore>) -> SocketAddr {
    served(
        Router::new()
            .fallback(get(|| async { "hello" }))
            .layer(layer),
    )
    .await
}

/// Returns a response's head without the date.
async fn head(app: SocketAddr, path: &str) -> String {
    let response = timeout(REQUEST_TIMEOUT, ask(app, "GET", path))
        .await
        .unwrap();
    response.split_once("\r\n\r\n").unwrap().0.to_owned()
}

/// Asserts that a head has this status, only these `X-RateLimit` fields, and no standard ones.
fn assert_degraded(head: &str, status: &str, fields: &[&str]) {
    assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
    let lines: Vec<&str> = head
        .split("\r\n")
        .filter(|line| line.starts_with("ratelimit") || line.starts_with("x-ratelimit"))
        .collect();
    assert_eq!(lines.len(), fields.len(), "{head}");
    for field in fields {
        assert!(lines.contains(field), "{field} in {head}");
    }
}

/// Sends requests until the store decides one again.
async fn until_recovered(app: SocketAddr) {
    let recovered = async { while head(app, "/").await.contains("degraded") {} };
    timeout(REQUEST_TIMEOUT, recovered).await.unwrap();
}

const DEGRADED: &str = "x-ratelimit-policy: degraded";

#[tokio::test(flavor = "multi_thread")]
async fn http_clients_get_each_limits_choice() {
    let mut redis = RedisServer::start();
    let allow = app(Setting::choosing(&redis, OnStoreFailure::Allow).await.layer).await;
    let refuse = app(Setting::choosing(&redis, OnStoreFailure::Refuse)
        .await
        .layer)
    .await;
    let setting = Setting::choosing(&redis, OnStoreFailure::Local).await;
    let local = app(setting.layer).await;
    for app in [allow, refuse, local] {
        let head = head(app, "/").await;
        assert!(
            head.contains("\r\nratelimit: \"minute\";r=11;t=55") && !head.contains(DEGRADED),
            "{head}"
        );
    }

    redis.kill();
    for _ in 0..15 {
        assert_degraded(
            &head(allow, "/").await,
            "200",
            &[DEGRADED, "x-ratelimit-remaining: -1"],
        );
        let refused = head(refuse, "/").await;
        assert_degraded(&refused, "503", &[DEGRADED]);
        assert!(refused.contains("\r\nretry-after: 1"), "{refused}");
    }
    for (status, left, reset) in [("200", 1, 30), ("200", 0, 60), ("429", 0, 60)] {
        let (left, reset) = (
            format!("x-ratelimit-remaining: {left}"),
            format!("x-ratelimit-reset: {reset}"),
        );
        let head = head(local, "/").await;
        assert_degraded(
            &head,
            status,
            &[DEGRADED, "x-ratelimit-limit: 2", &left, &reset],
        );
        assert_eq!(
            head.contains("\r\nretry-after: 30"),
            status == "429",
            "{head}"
        );
    }

    redis.start_again();
    for app in [allow, refuse, local] {
        until_recovered(app).await;
        assert!(
            head(app, "/")
                .await
                .contains("\r\nratelimit: \"minute\";r=")
        );
    }
    setting.clock.advance(secs(3_600));
    head(local, "/").await;
    assert!(setting.local.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_of_one_policy_choose_for_themselves() {
    let mut redis = RedisServer::start();
    let policy = policy_of(
        per_hour("login", 5)
            .when(|head| head.uri().path() == "/login")
            .on_store_failure(OnStoreFailure::Refuse),
    )
    .limit(per_minute("minute", 12).on_store_failure(OnStoreFailure::Local))
    .limit(per_hour("everyone", 1))
    .instances(6);
    let setting = Setting::new(&redis, policy, "mixed").await;
    let app = app(setting.layer).await;
    redis.kill();
    assert_degraded(&head(app, "/login").await, "503", &[DEGRADED]);
    assert!(setting.local.is_empty());
    for (status, left) in [("200", 1), ("200", 0), ("429", 0)] {
        let reset = format!("x-ratelimit-reset: {}", (2 - left) * 30);
        let left = format!("x-ratelimit-remaining: {left}");
        assert_degraded(
            &head(app, "/").await,
            status,
            &[DEGRADED, "x-ratelimit-limit: 2", &left, &reset],
        );
    }
}

#[cfg(feature = "tonic")]
#[tokio::test(flavor = "multi_thread")]
async fn grpc_clients_get_each_limits_choice() {
    use tonic::{Code, Status};

    use crate::tonic_server::Client;

    let mut redis = RedisServer::start();
    let allow = Client::of(Setting::choosing(&redis, OnStoreFailure::Allow).await.layer).await;
    let refuse = Client::of(
        Setting::choosing(&redis, OnStoreFailure::Refuse)
            .await
            .layer,
    )
    .await;
    let setting = Setting::choosing(&redis, OnStoreFailure::Local).await;
    let local = Client::of(setting.layer).await;
    let call = async |client: &Client| {
        let headers = timeout(REQUEST_TIMEOUT, client.call()).await.unwrap();
        (Status::from_header_map(&headers).unwrap().code(), headers)
    };
    for client in [&allow, &refuse, &local] {
        let (code, headers) = call(client).await;
        assert_eq!((code, headers.get("x-ratelimit-policy")), (Code::Ok, None));
        assert_eq!(headers["ratelimit"], "\"minute\";r=11;t=55");
    }

    redis.kill();
    for _ in 0..15 {
        let (code, headers) = call(&allow).await;
        assert_eq!(
            (code, headers["x-ratelimit-remaining"].as_bytes()),
            (Code::Ok, &b"-1"[..])
        );
        assert_eq!(
            (
                headers.get("ratelimit"),
                headers["x-ratelimit-policy"].as_bytes()
            ),
            (None, &b"degraded"[..])
        );
        let (code, headers) = call(&refuse).await;
        assert_eq!(
            (code, headers["retry-after"].as_bytes()),
            (Code::Unavailable, &b"1"[..])
        );
        assert_eq!(
            (
                headers.get("ratelimit"),
                headers["x-ratelimit-policy"].as_bytes()
            ),
            (None, &b"degraded"[..])
        );
    }
    for (expected, left) in [
        (Code::Ok, "1"),
        (Code::Ok, "0"),
        (Code::ResourceExhausted, "0"),
    ] {
        let (code, headers) = call(&local).await;
        assert_eq!(
            (code, headers["x-ratelimit-remaining"].to_str().unwrap()),
            (expected, left)
        );
        assert_eq!(
            (
                headers.get("ratelimit"),
                headers["x-ratelimit-policy"].as_bytes()
            ),
            (None, &b"degraded"[..])
        );
    }

    redis.start_again();
    for client in [&allow, &refuse, &local] {
        let recovered = async { while call(client).await.1.contains_key("x-ratelimit-policy") {} };
        timeout(REQUEST_TIMEOUT, recovered).await.unwrap();
    }
    setting.clock.advance(secs(3_600));
    assert_eq!(call(&local).await.0, Code::Ok);
    assert!(setting.local.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn outage_releases_no_client_over_quota() {
    let mut redis = RedisServer::start();
    for choice in [
        OnStoreFailure::Allow,
        OnStoreFailure::Refuse,
        OnStoreFailure::Local,
    ] {
        let limit = per_minute("minute", 2)
            .by(key::path_segment(0))
            .on_store_failure(choice);
        let setting = Setting::new(&redis, policy_of(limit), &format!("known-{choice:?}")).await;
        let app = app(setting.layer).await;
        for status in ["200", "200", "429"] {
            assert!(
                head(app, "/ann")
                    .await
                    .starts_with(&format!("HTTP/1.1 {status} "))
            );
        }
        redis.kill();
        let mut admitted = 0;
        for _ in 0..100 {
            let head = head(app, "/ann").await;
            admitted += u32::from(head.starts_with("HTTP/1.1 200 "));
            let seconds = head
                .split_once("retry-after: ")
                .map(|(_, rest)| rest[..2].trim().parse::<u64>().unwrap());
            assert!(seconds.is_none_or(|seconds| seconds <= 30), "{head}");
        }
        println!("{choice:?}: {admitted} of 100 admitted");
        assert_eq!(admitted, 0, "{choice:?}");
        // Other clients get what the limit chooses.
        let bob = head(app, "/bob").await;
        assert_eq!(
            bob.starts_with("HTTP/1.1 200 "),
            choice != OnStoreFailure::Refuse,
            "{bob}"
        );
        redis.start_again();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn outage_keeps_refusals_beside_holds() {
    let mut redis = RedisServer::start();
    let policy = policy_of(per_hour("hour", 2).by(key::path_segment(0)))
        .limit(Limit::new("streams", Quota::concurrent(5)).by(key::path_segment(0)));
    let setting = Setting::new(&redis, policy, "holds").await;
    let app = app(setting.layer).await;
    for status in ["200", "200", "429"] {
        let head = head(app, "/ann").await;
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
    }
    redis.kill();
    for _ in 0..20 {
        let refused = head(app, "/ann").await;
        assert!(refused.starts_with("HTTP/1.1 429 "), "{refused}");
    }
    assert!(head(app, "/bob").await.starts_with("HTTP/1.1 200 "));
}

#[tokio::test(flavor = "multi_thread")]
async fn local_share_continues_from_refusal() {
    let mut redis = RedisServer::start();
    let limit = per_hour("hour", 100)
        .on_store_failure(OnStoreFailure::Local)
        .by(key::path_segment(0));
    let setting = Setting::new(&redis, policy_of(limit), "share").await;
    let app = app(setting.layer).await;
    for _ in 0..100 {
        assert!(head(app, "/ann").await.starts_with("HTTP/1.1 200 "));
    }
    assert!(head(app, "/ann").await.starts_with("HTTP/1.1 429 "));
    redis.kill();
    for (client, expected) in [("/ann", 0), ("/bob", 100)] {
        let mut admitted = 0;
        for _ in 0..110 {
            admitted += u32::from(head(app, client).await.starts_with("HTTP/1.1 200 "));
        }
        println!("{client}: {admitted} of 110 admitted");
        // Some seconds may have refilled a unit.
        assert!(
            (expected..=expected + 1).contains(&admitted),
            "{client}: {admitted}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_of_paused_store_charge_nothing() {
    let redis = RedisServer::start();
    let setting = Setting::choosing(&redis, OnStoreFailure::Refuse).await;
    let handle = setting.layer.handle();
    let app = app(setting.layer.clone()).await;
    let everyone = tower_quota::Key::EVERYONE;
    let left = async || Some(handle.peek("minute", &everyone).await.ok()?.remaining());
    assert!(head(app, "/").await.starts_with("HTTP/1.1 200"));

    // The server runs these calls after the pause.
    redis.pause();
    let refused = tokio::join!(head(app, "/"), head(app, "/"), head(app, "/"));
    for head in [refused.0, refused.1, refused.2] {
        assert!(head.starts_with("HTTP/1.1 503"), "{head}");
    }
    redis.resume();
    let refunded = async {
        while left().await < Some(11) {
            tokio::task::yield_now().await;
        }
    };
    let waited = timeout(REQUEST_TIMEOUT, refunded).await;
    assert!(waited.is_ok(), "{:?} of 11 left", left().await);
}
