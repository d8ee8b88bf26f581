//! Tests the live page, and the routes for clients without known keys.

use axum::Router;
use axum::routing::get;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tower_quota::{Limit, Policy, Quota, RateLimitLayer};
use tower_quota_admin::{AdminOptions, ProblemKind, router};
use tower_quota_dev::RedisServer;
use tower_quota_live::MemoryRules;
use tower_quota_redis::RedisStore;

use crate::server::{Instance, TOKEN, options, problem, send, serve};

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
    let page = send(instance.anonymous(Method::GET, "/")).await;
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
async fn page_with_own_authentication_requests_no_token() {
    let options = AdminOptions::new().authenticated_by_own_layer();
    let instance = Instance::with(MemoryRules::new(), options).await;
    let page = send(instance.anonymous(Method::GET, "/"))
        .await
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
    assert_eq!(instance.ask("ann").await, 403);
    let removed = instance.unblock(&target).await;
    assert_eq!(removed.status(), 200);
    assert_eq!(instance.ask("ann").await, 429);
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
    assert_eq!(instance.ask("ann").await, 200);
    let audit = &instance.json("/v1/audit").await["records"];
    assert_eq!(audit[0]["what"], "reset");
    assert_eq!(audit[1]["what"], "grant");
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
        problem(send(request).await, ProblemKind::NotFound).await;
    }
}

#[tokio::test]
async fn blocks_are_listed_up_to_limit() {
    let instance = Instance::with_rules().await;
    for client in ["ann", "bob", "eve"] {
        instance.block(client).await;
    }
    assert_eq!(
        instance.json("/v1/blocks?count=2").await["blocks"]
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
    let admin = serve(router(layer.handle(), options()).unwrap()).await;
    let service = serve(Router::new().fallback(get(async || "hello")).layer(layer)).await;

    let client = reqwest::Client::new();
    let mut events = send(client.get(format!("{admin}/v1/events")).bearer_auth(TOKEN)).await;
    assert_eq!(send(client.get(&service)).await.status(), 200);
    // Each snapshot has the calls since the previous snapshot.
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

/// Returns the next snapshot of a stream.
async fn snapshot(events: &mut reqwest::Response) -> Value {
    let mut text = String::new();
    while !text.contains("\n\n") {
        text += core::str::from_utf8(&events.chunk().await.unwrap().unwrap()).unwrap();
    }
    let data = text.lines().find_map(|line| line.strip_prefix("data: "));
    serde_json::from_str(data.unwrap()).unwrap()
}

#[tokio::test]
async fn refusing_limit_is_first_of_many() {
    // A request has at most 32 limits, so each busy limit has a route.
    let busy: String = (0..60)
        .map(|number| format!("  - {{ name: busy-{number}, quota: 100/minute, key: none, when: {{ path: /{number} }} }}\n"))
        .collect();
    let rules = format!(
        "limits:\n{busy}  - {{ name: all, quota: 100/minute, key: none, when: {{ path: / }} }}\n  \
         - {{ name: login, quota: 2/minute, key: header x-api-key, when: {{ path: / }} }}\n"
    );
    let options = options().title("orders, production").instance("eu-1");
    let instance = Instance::with(MemoryRules::new(), options).await;
    let put = instance.put_rules(&rules).header("If-None-Match", "*");
    assert_eq!(send(put).await.status(), 200);
    let mut events = instance.get("/v1/events").await;
    snapshot(&mut events).await;
    for number in 0..60 {
        for _ in 0..8 {
            let path = format!("{}/{number}", instance.service);
            send(instance.client.get(path)).await;
        }
    }
    for _ in 0..12 {
        instance.ask("ann").await;
    }
    let mut seen = Value::Null;
    for _ in 0..30 {
        seen = snapshot(&mut events).await;
        if seen["limits"][0]["limit"] == "login" && seen["limits"][0]["limited"] == 10 {
            break;
        }
    }
    assert_eq!(seen["health"]["title"], "orders, production");
    assert_eq!(seen["health"]["instance"], "eu-1");
    let [login, all] = [&seen["limits"][0], &seen["limits"][1]];
    assert_eq!(login["quota"], "2/minute");
    assert_eq!(login["scope"], "header x-api-key");
    assert_eq!(seen["more_limits"], 12);
    // This limit would have admitted what `login` refused.
    assert_eq!(all["allowed"], 2);
    assert_eq!(all["would_allow"], 10);
    assert_eq!(all["limited"], 0);
    // A later stream begins with the last seconds.
    let first = snapshot(&mut instance.get("/v1/events").await).await;
    let refused = first["seconds"].as_array().unwrap().iter();
    assert_eq!(
        refused
            .filter_map(|second| second["limits"]["login"][2].as_u64())
            .sum::<u64>(),
        10
    );
}

#[tokio::test]
async fn client_is_found_by_its_key() {
    let instance = Instance::with_rules().await;
    let client = limited(&instance).await;
    let mut found = instance.client("find", json!({ "key": "ann" })).await["clients"].take();
    let refused_at = found[0]["refused_at"].take();
    assert!(refused_at.is_string(), "{refused_at}");
    assert_eq!(
        found,
        json!([{ "scope": client["scope"], "hash": client["hash"], "limits": ["minute"], "refused_at": null }])
    );
}

#[tokio::test]
async fn reason_is_a_line_of_plain_text() {
    let instance = Instance::with_rules().await;
    let body =
        json!({ "target": "ann", "seconds": 60, "reason": "\u{1b}[2J a \u{202e}bad\nclient" });
    let put = instance.request(Method::PUT, "/v1/blocks").json(&body);
    let block: Value = send(put).await.json().await.unwrap();
    assert_eq!(block["reason"], "[2J a bad client");
}
