//! Tests overrides of single clients over HTTP.

use std::time::Duration;

use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};
use tower_quota_admin::ProblemKind;
use tower_quota_dev::RedisServer;
use tower_quota_live::{MemoryRules, RedisRules};

use crate::server::{self, Instance, RULES, options, problem, send};

/// The time within which a change is in force on every instance.
const IN_FORCE: Duration = Duration::from_secs(2);

async fn put(instance: &Instance, body: Value) -> Response {
    let request = instance.request(Method::PUT, "/v1/overrides");
    send(request.json(&body)).await
}

async fn end(instance: &Instance, id: &Value) -> Response {
    let request = instance.request(Method::POST, "/v1/overrides/remove");
    send(request.json(&json!({ "id": id }))).await
}

async fn capacity(instance: &Instance, key: &str) -> Value {
    let client = json!({ "limit": "minute", "key": key });
    instance.client("peek", client).await["capacity"].take()
}

/// Waits until a client has this capacity.
async fn has_capacity(instance: &Instance, key: &str, units: u64) {
    let has_it = async { while capacity(instance, key).await != units {} };
    tokio::time::timeout(IN_FORCE, has_it).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn override_holds_on_two_instances() {
    let redis = RedisServer::start();
    let start = async || {
        let rules = RedisRules::new(&redis.url(), "test").unwrap();
        Instance::with(rules, options().allow_showing_keys()).await
    };
    let (one, other) = (start().await, start().await);
    let first = one.put_rules(RULES).header("If-None-Match", "*");
    assert_eq!(send(first).await.status(), 200);
    let is_followed = async { while other.get("/v1/rules").await.status() != StatusCode::OK {} };
    tokio::time::timeout(IN_FORCE, is_followed).await.unwrap();

    let body = json!({
        "limit": "minute", "key": "pro_1", "quota": "60/minute", "for": "2h", "reason": "launch day",
    });
    let made: Value = put(&one, body).await.json().await.unwrap();
    assert_eq!(capacity(&one, "pro_1").await, 60);
    has_capacity(&other, "pro_1", 60).await;
    assert_eq!(capacity(&other, "pro_2").await, 50);
    // Requests count by the override, and explanations name the override.
    let sample = json!({ "headers": { "x-api-key": "pro_1" } });
    let explain = other.request(Method::POST, "/v1/explain").json(&sample);
    let explained: Value = send(explain).await.json().await.unwrap();
    assert_eq!(explained["limits"][0]["quota"], "60/minute");

    let listed = other.json("/v1/overrides").await["overrides"].take();
    assert_eq!(listed, json!([server::listed(&made)]));
    for (field, value) in [
        ("kind", "override"),
        ("limit", "minute"),
        ("quota", "60/minute"),
        ("reason", "launch day"),
        ("author", "tests"),
    ] {
        assert_eq!(made[field], value, "{made}");
    }
    assert!(!made.to_string().contains("pro_1"), "{made}");
    let shown = other.json("/v1/overrides?show_keys=true").await;
    assert_eq!(shown["overrides"][0]["target"]["key"]["text"], "pro_1");
    assert_eq!(other.json("/v1/blocks").await["blocks"], json!([]));
    let record = one.json("/v1/audit?count=1").await["records"][0].take();
    assert_eq!(
        (&record["what"], &record["target"], &record["comment"]),
        (&json!("override"), &made["id"], &json!("launch day"))
    );

    assert_eq!(end(&other, &made["id"]).await.status(), 200);
    has_capacity(&one, "pro_1", 50).await;
    problem(end(&one, &made["id"]).await, ProblemKind::NotFound).await;
}

#[tokio::test]
async fn override_by_hash_ends_at_instant() {
    let instance = Instance::with_rules().await;
    // The client is in no list.
    let find = instance.client("find", json!({ "key": "ann" })).await;
    let hash = find["clients"][0]["hash"].as_str().unwrap().to_owned();
    let until = tower_quota_live::Time::now().after(Duration::from_secs(3_600));
    let body = json!({
        "limit": "minute", "key": format!("hash:{hash}"), "quota": "9/minute", "until": until,
    });
    let made: Value = put(&instance, body).await.json().await.unwrap();
    assert_eq!(made["id"], format!("minute {hash}"));
    assert_eq!(made["until"], json!(until));
    assert_eq!(capacity(&instance, "ann").await, 9);
}

#[tokio::test]
async fn impossible_override_is_a_problem() {
    let instance = Instance::with_rules().await;
    for (change, named) in [
        (json!({ "quota": "lots" }), "100/minute"),
        (json!({ "quota": "2 at once" }), "counts per period"),
        (json!({ "for": "soon" }), "soon"),
        (json!({ "for": null }), "give `for`"),
        (
            json!({ "for": "1h", "until": "2100-01-01T00:00:00Z" }),
            "two ends",
        ),
        (
            json!({ "for": null, "until": "2001-01-01T00:00:00Z" }),
            "2001-01-01",
        ),
        (json!({ "for": "400d" }), "at most a year"),
        (json!({ "for": "0s" }), "in the future"),
        (json!({ "key": "" }), "minute"),
        (json!({ "key": "hash:xyz" }), "xyz"),
    ] {
        let mut body = json!({ "limit": "minute", "key": "ann", "quota": "9/minute", "for": "1h" });
        for (field, value) in change.as_object().unwrap() {
            body[field] = value.clone();
        }
        let refused = problem(put(&instance, body).await, ProblemKind::InvalidValue).await;
        let detail = refused["detail"].as_str().unwrap();
        assert!(detail.contains(named), "{detail}");
    }
    let unknown = json!({ "limit": "hour", "key": "ann", "quota": "9/minute", "for": "1h" });
    problem(put(&instance, unknown).await, ProblemKind::NotFound).await;
    assert_eq!(instance.json("/v1/overrides").await["overrides"], json!([]));
}

/// Returns the number of requests that an instance admits until it refuses one.
async fn admitted(instance: &Instance, key: &str) -> usize {
    let mut admitted = 0;
    while instance.ask(key).await == 200 {
        admitted += 1;
    }
    admitted
}

#[tokio::test]
async fn override_tops_up_a_window_at_once() {
    let instance = Instance::start().await;
    let rules =
        "limits: [{ name: minute, quota: 5 per 300 days fixed_window, key: header x-api-key }]";
    let first = instance.put_rules(rules).header("If-None-Match", "*");
    assert_eq!(send(first).await.status(), 200);
    assert_eq!(admitted(&instance, "ann").await, 5);
    // Units above the quota are an override. A grant gives back used units only.
    let grant = json!({ "limit": "minute", "key": "ann", "units": 3, "for": "1d" });
    let refused = instance.post("/v1/clients/grant", &grant).await;
    problem(refused, ProblemKind::InvalidRequest).await;
    let quota = "8 per 300 days fixed_window";
    let body = json!({ "limit": "minute", "key": "ann", "quota": quota, "for": "30d" });
    let made: Value = put(&instance, body).await.json().await.unwrap();
    assert_eq!(admitted(&instance, "ann").await, 3);
    assert_eq!(end(&instance, &made["id"]).await.status(), 200);
    assert_eq!(capacity(&instance, "ann").await, 5);
}

#[tokio::test]
async fn unlimited_override_counts_as_its_limit() {
    let instance = Instance::start().await;
    let rules = "{ defaults: { key: header x-api-key }, limits: [{ name: minute, quota: 5/minute }, \
                 { name: uploads, quota: 2 at once }] }";
    let first = instance.put_rules(rules).header("If-None-Match", "*");
    assert_eq!(send(first).await.status(), 200);
    for (limit, quota) in [("minute", "10000000/second"), ("uploads", "10000 at once")] {
        let body = json!({ "limit": limit, "key": "ann", "quota": "unlimited", "for": "1h" });
        let made: Value = put(&instance, body).await.json().await.unwrap();
        assert_eq!(made["quota"], quota, "{made}");
    }
}

#[tokio::test]
async fn end_of_override_keeps_blocks() {
    let instance = Instance::with_rules().await;
    let block = instance.block("203.0.113.0/24").await;
    problem(end(&instance, &block["id"]).await, ProblemKind::NotFound).await;
    assert_eq!(
        instance.json("/v1/blocks").await["blocks"],
        json!([server::listed(&block)])
    );
    let body = json!({ "limit": "minute", "key": "ann", "quota": "9/minute", "for": "1h" });
    let made: Value = put(&instance, body).await.json().await.unwrap();
    let id = made["id"].as_str().unwrap();
    assert_eq!(instance.unblock(id).await.status(), 404);
    assert_eq!(
        instance.json("/v1/overrides").await["overrides"],
        json!([server::listed(&made)])
    );
}

#[tokio::test]
async fn very_long_key_is_stored_as_hash() {
    let instance = Instance::with(MemoryRules::new(), options().allow_showing_keys()).await;
    let first = instance.put_rules(RULES).header("If-None-Match", "*");
    assert_eq!(send(first).await.status(), 200);
    for (length, is_shown) in [(1_024, true), (10_000, false)] {
        let key = "k".repeat(length);
        let body = json!({ "limit": "minute", "key": key, "quota": "9/minute", "for": "1h" });
        let made: Value = put(&instance, body).await.json().await.unwrap();
        assert_eq!(capacity(&instance, &key).await, 9);
        let shown = instance.json("/v1/overrides?show_keys=true").await;
        let text = &shown["overrides"][0]["target"]["key"]["text"];
        assert_eq!(text.as_str() == Some(&*key), is_shown, "{length}");
        assert_eq!(end(&instance, &made["id"]).await.status(), 200);
    }
}
