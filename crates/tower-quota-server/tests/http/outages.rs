//! Answers while Redis is away or silent, and when it is back.

use std::net::SocketAddr;
use std::time::Duration;

use axum::body::Body;
use axum::extract::ConnectInfo;
use http::Request;
use serde_json::{Value, json};
use tower::ServiceExt;
use tower_quota_core::BoxStore;
use tower_quota_dev::RedisServer;
use tower_quota_redis::RedisStore;
use tower_quota_server::http::{Gate, HttpOptions};
use tower_quota_testkit::{ScriptedAnswer, ScriptedStore};

use crate::server::{DEADLINE, Server, doors, send, status};

const RULES: &str = "
defaults: { key: header x-user }
limits:
  - { name: hour, quota: 3/hour, settle: handler }
routes:
  - match: { path: /pay }
    limits: [{ name: pay, quota: 3/hour, on_store_failure: refuse }]
  - match: { path: /local }
    limits: [{ name: local, quota: 1/hour, on_store_failure: local }]
";

/// Ends a test that waits in vain. A loaded machine may need seconds for the answers.
const PATIENCE: Duration = Duration::from_secs(60);

/// Long enough for an answer of Redis on a loaded machine, and not too long for the answers without Redis.
const PATIENT: Duration = Duration::from_millis(200);

/// The deadline of the server by default.
const SHORT: Duration = Duration::from_millis(15);

async fn start(redis: &RedisServer, deadline: Duration) -> Server {
    let store = RedisStore::options().deadline(deadline).connect_lazily();
    Server::over(RULES, store.connect(&redis.url()).await.unwrap(), deadline).await
}

impl Server {
    fn ask_as(&self, user: &str, path: &str) -> reqwest::RequestBuilder {
        self.ask_about("GET", path, "192.0.2.1")
            .header("x-user", user)
    }

    async fn check_as(&self, user: &str, path: &str) -> Value {
        let call = json!({ "path": path, "headers": { "x-user": user } });
        self.call("/v1/check", call).await
    }

    /// Asks until the store decides again, which takes a probe of the breaker.
    async fn until_decided(&self) {
        let decided = async { while self.check_as("probe", "/").await["degraded"] == true {} };
        tokio::time::timeout(PATIENCE, decided).await.unwrap();
    }
}

/// Asserts that limits choose the answers, although Redis never answers.
async fn assert_degraded(server: &Server) {
    let began = tokio::time::timeout(PATIENCE, async {
        let open = send(server.ask_as("ann", "/")).await;
        assert_eq!(open.status(), 204);
        assert_eq!(open.headers()["x-ratelimit-policy"], "degraded");
        let closed = send(server.ask_as("ann", "/pay")).await;
        assert_eq!(closed.status(), 503);
        assert_eq!(closed.headers()["retry-after"], "1");
        assert_eq!(server.check_as("ann", "/").await["degraded"], true);
        let closed = server.check_as("ann", "/pay").await;
        assert_eq!(
            (&closed["status"], &closed["retry_after_ms"]),
            (&503.into(), &1_000.into())
        );
        assert_eq!(status(server.ask_as("bob", "/local")).await, 204);
        assert_eq!(server.check_as("bob", "/local").await["status"], 429);
        let (status, _) = server
            .refused(
                "/v1/check",
                json!({ "peek": true, "headers": { "x-user": "ann" } }),
            )
            .await;
        assert_eq!(status, 503);
        let safe = json!({ "domain": "shop", "descriptors": [{ "entries": [{ "key": "safe", "value": "x" }] }] });
        let response = send(server.post("/json", &safe)).await;
        assert_eq!(response.status(), 503);
        assert_eq!(response.text().await.unwrap(), "Service Unavailable\n");
    });
    began.await.unwrap();
}

#[tokio::test]
async fn limits_choose_the_answer_while_redis_is_killed() {
    let mut redis = RedisServer::start();
    let server = start(&redis, PATIENT).await;
    server.until_decided().await;
    redis.kill();
    assert_degraded(&server).await;
    redis.start_again();
    server.until_decided().await;
}

#[tokio::test]
async fn limits_choose_the_answer_while_redis_is_paused() {
    let redis = RedisServer::start();
    let server = start(&redis, PATIENT).await;
    server.until_decided().await;
    redis.pause();
    assert_degraded(&server).await;
    redis.resume();
    server.until_decided().await;
}

#[tokio::test(start_paused = true)]
#[expect(clippy::disallowed_methods, reason = "the runtime's time is paused")]
async fn silent_store_is_answered_for_at_the_deadline() {
    let store = ScriptedStore::new();
    store.set_default(ScriptedAnswer::memory().held());
    let store = BoxStore::new(store);
    let gate = Gate::new(store.clone(), SHORT);
    let (router, _live) = doors(RULES, &HttpOptions::default(), &gate, store).await;
    let auth = |path: &str| {
        Request::get("/v1/auth")
            .header("x-forwarded-method", "GET")
            .header("x-forwarded-uri", path)
            .header("x-forwarded-host", "shop.example.com")
            .header("x-forwarded-for", "192.0.2.1")
            .header("x-user", "ann")
            .extension(ConnectInfo(SocketAddr::from(([127, 0, 0, 1], 9))))
            .body(Body::empty())
    };
    let check = |call: Value| {
        Request::post("/v1/check")
            .header("content-type", "application/json")
            .body(Body::from(call.to_string()))
    };
    let headers = json!({ "x-user": "ann" });
    for (request, expected) in [
        (auth("/"), 204),
        (auth("/pay"), 503),
        (check(json!({ "headers": headers })), 200),
        (check(json!({ "headers": headers, "peek": true })), 503),
    ] {
        let began = tokio::time::Instant::now();
        let response = router.clone().oneshot(request.unwrap()).await.unwrap();
        let answered = (response.status().as_u16(), began.elapsed());
        assert_eq!(answered, (expected, SHORT));
    }
}

#[tokio::test]
async fn instances_share_counters() {
    let redis = RedisServer::start();
    let (first, second) = (start(&redis, DEADLINE).await, start(&redis, DEADLINE).await);
    for server in [&first, &second, &first] {
        assert_eq!(status(server.ask_as("ann", "/")).await, 204);
    }
    assert_eq!(status(second.ask_as("ann", "/")).await, 429);
    assert_eq!(second.check_as("ann", "/").await["status"], 429);
}
