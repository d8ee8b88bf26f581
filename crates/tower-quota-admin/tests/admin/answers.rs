//! Tests that answers have the fields of the OpenAPI document, and the other way round.

use std::collections::BTreeSet;
use std::time::Duration;

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tower_quota_dev::RedisServer;
use tower_quota_live::{LiveOptions, MemoryRules};
use tower_quota_redis::RedisStore;
use tower_quota_rules::TestReport;

use crate::fields;
use crate::server::{Instance, options, send};
use crate::shedding::{overload, two_places};

/// Rules with everything that an explanation names.
const RULES: &str = "\
defaults: { key: [header x-api-key, client_ip] }
limits:
  - { name: minute, quota: 5/minute }
  - { name: soft, quota: 5/minute, over: flag }
routes:
  - { match: { path: /tenants }, limits: [{ name: tenants, quota: 9/minute, key: header x-tenant }] }
  - { match: { route: \"/reports/{id}\" }, limits: [{ name: reports, quota: 3/minute }] }
tiers: { pro: { limits: { minute: 50/minute } } }
assign: [{ key: \"pro_*\", tier: pro }]
block: [{ path: /old }]
";

/// A test that fails.
const TEST: &str = "  - { request: { path: /old }, expect: { outcome: counted } }\n";

/// Fields that only other states have. The tests of these states compare their answers too.
const ELSEWHERE: [&str; 3] = [
    "Reaching.note",
    "TopClients.instances",
    "VersionFate.rejected",
];

/// An instance, and the fields of its answers.
struct Tour {
    instance: Instance,
    seen: BTreeSet<String>,
}

impl Tour {
    /// Compares the answer to a request with the document.
    async fn send(&mut self, status: u16, request: RequestBuilder) {
        let (client, request) = request.build_split();
        let request = request.unwrap();
        let (method, path) = (
            request.method().to_string(),
            request.url().path().to_owned(),
        );
        let response = client.execute(request).await.unwrap();
        let answered = response.status();
        let answer: Value = response.json().await.unwrap();
        assert_eq!(answered, status, "{path}: {answer}");
        let schema = fields::schema(&method, &path, status);
        fields::compare(&path, schema, &answer, &mut self.seen);
    }

    async fn get(&mut self, path: &str) {
        let request = self.instance.request(Method::GET, path);
        self.send(200, request).await;
    }

    async fn post(&mut self, path: &str, body: Value) {
        let request = self.instance.request(Method::POST, path);
        self.send(200, request.json(&body)).await;
    }

    async fn put(&mut self, path: &str, body: Value) {
        let request = self.instance.request(Method::PUT, path);
        self.send(200, request.json(&body)).await;
    }

    async fn put_rules(&mut self, status: u16, rules: &str) {
        let put = self.instance.put_rules(rules).header("If-Match", "*");
        self.send(status, put).await;
    }

    /// Compares the newest snapshot of the stream of events.
    async fn events(&mut self) {
        let mut events = self.instance.get("/v1/events").await;
        let schema = fields::schema("get", "/v1/events", 200);
        // The second event has a second.
        for _ in 0..2 {
            let event = events.chunk().await.unwrap().unwrap();
            let event = core::str::from_utf8(&event).unwrap();
            let data = event.lines().find_map(|line| line.strip_prefix("data: "));
            let snapshot = serde_json::from_str(data.unwrap()).unwrap();
            fields::compare("events", schema, &snapshot, &mut self.seen);
        }
    }
}

/// Returns the fields of all documented answers.
fn documented() -> BTreeSet<String> {
    let mut fields = BTreeSet::new();
    fields::add_documented("Problem", fields::problem(), &mut fields);
    for (path, _, operation) in fields::operations() {
        for content in operation["responses"].as_object().unwrap().values() {
            let media = content["content"].as_object().into_iter().flatten();
            for (_, media) in media {
                fields::add_documented(path, &media["schema"], &mut fields);
            }
        }
    }
    fields
}

#[tokio::test]
async fn answers_have_the_documented_fields() {
    let redis = RedisServer::start();
    let store = RedisStore::options()
        .deadline(Duration::from_secs(10))
        .connect(&redis.url())
        .await
        .unwrap();
    let figures = store.clone();
    let options = options().store_figures("redis", move || figures.stats());
    let shed = two_places();
    let options = options.shed_layer("orders", shed.handle());
    let options = options.allow_showing_keys().title("orders");
    let mut tour = Tour {
        instance: Instance::counting(store, MemoryRules::new(), options, LiveOptions::new()).await,
        seen: BTreeSet::new(),
    };
    tour.get("/v1/health").await;
    tour.put_rules(200, RULES).await;
    tour.put_rules(200, &RULES.replace("name: soft", "name: other"))
        .await;
    tour.put_rules(422, "limits: [{ name: minute, quota: 5/minte }]")
        .await;
    let check = tour.instance.request(Method::POST, "/v1/rules/check");
    let check = check
        .header("Content-Type", "application/yaml")
        .body(format!(
            "{RULES}tests:\n{}",
            TEST.repeat(TestReport::MAX_FAILURES + 1)
        ));
    tour.send(200, check).await;
    tour.get("/v1/rules/history").await;
    tour.get("/v1/rules/diff?from=1&to=2").await;
    let rollback = tour.instance.request(Method::POST, "/v1/rules/rollback");
    let rollback = rollback.json(&json!({ "version": 1 }));
    tour.send(
        412,
        rollback.try_clone().unwrap().header("If-Match", "\"1-\""),
    )
    .await;
    tour.send(200, rollback.header("If-Match", "*")).await;

    for _ in 0..25 {
        let request = tour
            .instance
            .client
            .get(format!("{}/reports/1", tour.instance.service));
        let request = request
            .header("x-api-key", "ann")
            .header("x-request-id", "a-1")
            .header(
                "traceparent",
                "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            );
        send(request).await;
        // A mistake after 20 requests, because the rules trust no proxy.
        let request = tour.instance.client.get(&tour.instance.service);
        send(request.header("x-forwarded-for", "203.0.113.9")).await;
    }
    tour.post("/v1/clients/refusals?show_keys=true", json!({}))
        .await;
    tour.get("/v1/top?limit=minute&show_keys=true").await;
    let ann = json!({ "limit": "minute", "key": "ann" });
    tour.post("/v1/clients/peek", ann.clone()).await;
    overload(shed).await;
    tour.events().await;
    tour.get("/v1/health").await;

    tour.put(
        "/v1/overrides",
        json!({ "limit": "minute", "key": "ann", "quota": "6/minute", "for": "1h" }),
    )
    .await;
    tour.get("/v1/overrides?show_keys=true").await;
    tour.put(
        "/v1/blocks",
        json!({ "target": "198.51.100.7", "seconds": 60 }),
    )
    .await;
    tour.put(
        "/v1/blocks",
        json!({ "target": "ann", "scope": "header x-api-key", "seconds": 60 }),
    )
    .await;
    tour.get("/v1/blocks?show_keys=true").await;
    tour.post("/v1/clients/find", json!({ "key": "198.51.100.7" }))
        .await;
    for key in ["ann", "pro_1"] {
        tour.post("/v1/clients/find", json!({ "key": key })).await;
        let sample = json!({ "path": "/reports/1", "headers": { "x-api-key": key } });
        tour.post("/v1/explain", sample).await;
    }
    tour.post("/v1/explain", json!({ "path": "/tenants" }))
        .await;
    tour.post("/v1/clients/peek", ann.clone()).await;
    tour.post("/v1/blocks/remove", json!({ "target": "ann" }))
        .await;
    tour.post(
        "/v1/clients/grant",
        json!({ "limit": "minute", "key": "ann", "units": 1 }),
    )
    .await;
    tour.post("/v1/clients/reset", ann).await;
    tour.get("/v1/audit").await;
    redis.command("CONFIG SET maxmemory 1").unwrap();
    for _ in 0..5 {
        tour.instance.ask("bob").await;
    }
    tour.get("/v1/health").await;

    let mut missing = documented();
    missing.retain(|field| !tour.seen.contains(field) && !ELSEWHERE.contains(&field.as_str()));
    assert_eq!(missing, BTreeSet::new());
}
