//! Tests the API over a policy from code, without a document.

use axum::Router;
use axum::routing::get;
use reqwest::{Client, Method};
use serde_json::json;
use tower_quota::{Limit, MemoryStore, Policy, Quota, RateLimitLayer, key};
use tower_quota_admin::{ProblemKind, router};

use crate::server::{Instance, options, problem, send, serve};

#[tokio::test]
async fn policy_of_code_is_operated_without_document() {
    let limit = Limit::new("minute", Quota::per_minute(2)).by(key::header("x-api-key"));
    let layer = RateLimitLayer::new(MemoryStore::new(), Policy::new().limit(limit));
    let admin = router(layer.handle(), options()).unwrap();
    let service = Router::new().fallback(get(async || "hello")).layer(layer);
    let instance = Instance {
        service: serve(service).await,
        admin: serve(admin).await,
        client: Client::new(),
    };
    for expected in [200, 200, 429] {
        assert_eq!(instance.ask("ann").await.as_u16(), expected);
    }
    let ann = json!({ "limit": "minute", "key": "ann" });
    assert_eq!(instance.client("peek", ann.clone()).await["remaining"], 0);
    let top = instance.json("/v1/top").await;
    let listed = format!("hash:{}", top["clients"][0]["hash"].as_str().unwrap());
    let grant = json!({ "limit": "minute", "key": listed, "units": 1 });
    assert_eq!(instance.client("grant", grant).await["remaining"], 1);
    assert_eq!(instance.client("reset", ann).await["remaining"], 2);
    let audit = instance.json("/v1/audit").await;
    assert_eq!(audit["records"][0]["what"], "reset");
    let health = instance.json("/v1/health").await;
    assert_eq!(health["healthy"], true);
    assert_eq!(health.get("rules"), None, "no source is missing");
    assert_eq!(instance.get("/v1/ready").await.status(), 200);
    assert_eq!(instance.get("/v1/events").await.status(), 200);

    for (method, path) in [
        (Method::GET, "/v1/rules"),
        (Method::PUT, "/v1/rules"),
        (Method::GET, "/v1/blocks"),
        (Method::POST, "/v1/explain"),
    ] {
        let response = send(instance.request(method, path)).await;
        let body = problem(response, ProblemKind::NotFound).await;
        let detail = body["detail"].as_str().unwrap();
        assert!(detail.contains("code of this service"), "{path}: {detail}");
    }
}
