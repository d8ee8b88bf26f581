//! The live page, and the routes that it has for clients whose keys it does not know.

use axum::Router;
use axum::routing::get;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tower_quota::{Limit, Policy, Quota, RateLimitLayer};
use tower_quota_admin::{AdminOptions, ProblemKind, router};
use tower_quota_live::{LiveOptions, LiveRules, MemoryRules, WithoutRules};
use tower_quota_redis::RedisStore;
use tower_quota_testkit::RedisServer;

use crate::server::{Instance, TOKEN, options, problem, serve};

/// Returns the first client that the instance lists as limited.
async fn limited(instance: &Instance) -> Value {
    for _ in 0..6 {
        instance.ask("ann").await;
    }
    instance.json("/v1/top").await["clients"][0].clone()
}

#[tokio::test]
async fn page_needs_no_token() {
    let instance = Instance::with_rules().await;
    let page = instance.anonymous(Method::GET, "/").send().await.unwrap();
    assert_eq!(
        (page.status(), &page.headers()["cache-control"]),
        (StatusCode::OK, &"no-store".parse().unwrap())
    );
    let policy = page.headers()["content-security-policy"]
        .to_str()
        .unwrap()
        .to_owned();
    let nonce = policy
        .split("'nonce-")
        .nth(1)
        .unwrap()
        .split('\'')
        .next()
        .unwrap();
    assert!(
        policy.starts_with("default-src 'none'; script-src 'nonce-"),
        "{policy}"
    );
    let text = page.text().await.unwrap();
    assert_eq!(
        text.matches(&format!("nonce=\"{nonce}\"")).count(),
        2,
        "one style and one script"
    );
    assert!(
        text.contains("data-authentication=\"token\"") && !text.contains("{{"),
        "{text}"
    );
}

#[tokio::test]
async fn page_of_own_authentication_asks_nothing() {
    let options = AdminOptions::new().authenticated_by_own_layer();
    let instance = Instance::with(MemoryRules::new(), options).await;
    let page = instance
        .anonymous(Method::GET, "/")
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    assert!(page.contains("data-authentication=\"own\""));
}

#[tokio::test]
async fn listed_client_is_blocked_by_hash() {
    let instance = Instance::with_rules().await;
    let client = limited(&instance).await;
    let hash = client["hash"].as_str().unwrap();
    let target = format!("hash:{hash}");
    let block = instance.block(&target).await;
    assert_eq!(block["id"], hash);
    assert_eq!(instance.ask("ann").await, StatusCode::FORBIDDEN);
    let removed = instance.unblock(&target).await;
    assert_eq!(removed.status(), StatusCode::NO_CONTENT);
    assert_eq!(instance.ask("ann").await, StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test]
async fn listed_client_is_operated_by_hash() {
    let instance = Instance::with_rules().await;
    let client = limited(&instance).await;
    let key = format!("hash:{}", client["hash"].as_str().unwrap());
    let peek = json!({ "limit": "minute", "key": key });
    assert_eq!(instance.client("peek", peek.clone()).await["remaining"], 0);
    let grant = json!({ "limit": "minute", "key": key, "units": 3 });
    assert_eq!(instance.client("grant", grant).await["remaining"], 3);
    assert_eq!(instance.client("reset", peek).await["remaining"], 5);
    assert_eq!(instance.ask("ann").await, StatusCode::OK);
    let audit = &instance.json("/v1/audit").await["records"];
    assert_eq!(
        (&audit[0]["what"], &audit[1]["what"]),
        (&json!("reset"), &json!("grant"))
    );
}

#[tokio::test]
async fn unlisted_client_is_a_problem() {
    let instance = Instance::with_rules().await;
    let key = "hash:0000000000000000";
    for (method, path, body) in [
        (
            Method::PUT,
            "/v1/blocks",
            json!({ "target": key, "seconds": 60 }),
        ),
        (
            Method::POST,
            "/v1/clients/reset",
            json!({ "limit": "minute", "key": key }),
        ),
        (
            Method::POST,
            "/v1/clients/grant",
            json!({ "limit": "minute", "key": key, "units": 1 }),
        ),
    ] {
        let request = instance.request(method, path).json(&body);
        problem(request.send().await.unwrap(), ProblemKind::NotFound).await;
    }
}

#[tokio::test]
async fn blocks_are_listed_up_to_limit() {
    let instance = Instance::with_rules().await;
    for client in ["ann", "bob", "eve"] {
        instance.block(client).await;
    }
    assert_eq!(
        instance.json("/v1/blocks?limit=2").await["blocks"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn snapshot_shows_latency_of_store() {
    let redis = RedisServer::start();
    let store = RedisStore::connect(&redis.url()).await.unwrap();
    let layer = RateLimitLayer::new(
        store,
        Policy::new().limit(Limit::new("all", Quota::per_minute(100))),
    );
    let live = LiveRules::start(
        layer.handle(),
        MemoryRules::new(),
        LiveOptions::new().without_rules(WithoutRules::Refuse),
    )
    .await
    .unwrap();
    let admin = serve(router(live, options()).unwrap()).await;
    let service = serve(Router::new().fallback(get(async || "hello")).layer(layer)).await;

    let client = reqwest::Client::new();
    let mut events = client
        .get(format!("{admin}/v1/events"))
        .bearer_auth(TOKEN)
        .send()
        .await
        .unwrap();
    assert_eq!(
        client.get(&service).send().await.unwrap().status(),
        StatusCode::OK
    );
    // Each snapshot has the calls since the one before.
    let mut latency = Value::Null;
    while latency.is_null() {
        let event = events.chunk().await.unwrap().unwrap();
        let event = core::str::from_utf8(&event).unwrap();
        let data = event
            .lines()
            .find_map(|line| line.strip_prefix("data: "))
            .unwrap();
        latency = serde_json::from_str::<Value>(data).unwrap()["store_latency"].clone();
    }
    assert_eq!(latency["calls"], 1);
    let micros = latency["p99_us"].as_u64().unwrap();
    assert!(
        (1..5_000_000).contains(&micros) && latency["p50_us"] == micros,
        "{latency}"
    );
}
