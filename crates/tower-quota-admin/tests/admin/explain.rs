//! Tests explanations, with routes, keys from code, and unknown inputs of a sample.

use reqwest::Method;
use serde_json::{Value, json};
use tower_quota::key;
use tower_quota_live::{LiveOptions, MemoryRules};
use tower_quota_rules::{CodeParts, Rules};

use crate::server::{Instance, options, send};

/// The tenant that an outer layer adds.
#[derive(Clone)]
struct Tenant(String);

const RULES: &str = "\
limits:
  - { name: minute, quota: 5/minute, key: [code tenant, client_ip] }
routes:
  - match: { route: \"/reports/{id}\" }
    limits: [{ name: reports, quota: 3/minute, key: client_ip }]
tiers:
  pro: { limits: { minute: 50/minute } }
defaults: { key: code tenant }
assign:
  - { key: \"pro-*\", tier: pro }
";

async fn instance() -> Instance {
    let tenant = key::extension("tenant", |tenant: &Tenant| Some(tenant.0.clone()));
    let parts = CodeParts::new().key("tenant", tenant);
    let live = LiveOptions::new().read_with(move |text| Rules::parse_with(text, &parts));
    let instance = Instance::with_live_options(MemoryRules::new(), options(), live).await;
    let put = instance.put_rules(RULES).header("If-None-Match", "*");
    let put = send(put).await;
    assert_eq!(put.status(), 200, "{}", put.text().await.unwrap());
    instance
}

async fn explain(instance: &Instance, sample: Value) -> (Vec<String>, Value) {
    let request = instance.request(Method::POST, "/v1/explain").json(&sample);
    let response = send(request).await;
    assert_eq!(response.status(), 200);
    let explained: Value = response.json().await.unwrap();
    let limits = explained["limits"].as_array().unwrap().iter();
    let names = limits.map(|limit| limit["name"].as_str().unwrap().to_owned());
    (names.collect(), explained)
}

#[tokio::test]
async fn missing_route_is_guessed_from_path() {
    let instance = instance().await;
    let keys = json!({ "code tenant": "pro-y" });
    let sample = json!({ "path": "/reports/1", "keys": keys });
    let (limits, explained) = explain(&instance, sample).await;
    assert_eq!(limits, ["minute", "reports"]);
    assert_eq!(explained["outcome"], "counted");
    let unknown = explained["unknown"].to_string();
    assert!(unknown.contains("/reports/{id}"), "{unknown}");

    let given = json!({ "path": "/reports/1", "route": "/reports/{id}", "keys": keys });
    let (limits, explained) = explain(&instance, given).await;
    assert_eq!(limits, ["minute", "reports"]);
    assert_eq!(explained["unknown"], Value::Null);

    let other = json!({ "path": "/reports/1", "route": "/reports/1", "keys": keys });
    assert_eq!(explain(&instance, other).await.0, ["minute"]);
}

#[tokio::test]
async fn missing_key_from_code_is_listed_as_unknown() {
    let instance = instance().await;
    let given = json!({ "path": "/", "keys": { "code tenant": "pro-y" } });
    let (_, explained) = explain(&instance, given).await;
    assert_eq!(explained["tier"], "pro");
    assert_eq!(explained["limits"][0]["quota"], "50/minute");
    assert_eq!(explained["left"][0]["remaining"], 50);
    assert_eq!(explained["unknown"], Value::Null);

    let (_, explained) = explain(&instance, json!({ "path": "/" })).await;
    assert_eq!(explained["limits"][0]["scope"], "ip");
    let unknown = explained["unknown"].to_string();
    assert!(unknown.contains("`code tenant`"), "{unknown}");
}

#[tokio::test]
async fn sample_has_ipv6_and_lists_of_values() {
    let instance = instance().await;
    let sample = json!({
        "path": "/Reports/1?q=%20a",
        "address": "2001:db8::1",
        "headers": { "accept": ["text/html", "text/plain"], "x-one": "1" },
        "keys": { "code tenant": "pro-y" },
    });
    assert_eq!(explain(&instance, sample).await.0, ["minute"]);
    let document = tower_quota_admin::openapi();
    let fields = &document["components"]["schemas"]["SampleRequest"]["properties"];
    let pattern = fields["address"]["pattern"].as_str().unwrap();
    assert!(pattern.contains(':'), "{pattern}");
    let values = document["components"]["schemas"]["OneOrMany"].to_string();
    assert!(values.contains("array"), "{values}");
}

#[tokio::test]
async fn explanation_names_what_gives_tier_and_quota() {
    let instance = instance().await;
    let sample = json!({ "path": "/", "keys": { "code tenant": "pro-y" } });
    let (_, explained) = explain(&instance, sample.clone()).await;
    assert_eq!(explained["tier_from"], "assign[0]");
    assert_eq!(explained["limits"][0]["source"], "tier pro");
    assert_eq!(explained["assumed_address"], "192.0.2.1");

    let made = json!({ "limit": "minute", "key": "pro-y", "quota": "7/minute", "for": "1h", "reason": "a test" });
    let made = instance.request(Method::PUT, "/v1/overrides").json(&made);
    let made = send(made).await;
    assert_eq!(made.status(), 200, "{}", made.text().await.unwrap());
    let (_, explained) = explain(&instance, sample).await;
    assert_eq!(explained["limits"][0]["quota"], "7/minute");
    let source = explained["limits"][0]["source"].as_str().unwrap();
    assert!(source.starts_with("override by tests until "), "{source}");
}

#[tokio::test]
async fn shared_missing_key_and_units_in_use_are_shown() {
    let instance = Instance::start().await;
    let rules = "\
defaults: { key: header x-api-key, missing: share }
limits:
  - { name: minute, quota: 5/minute }
  - { name: exports, quota: 2 at once }
";
    let put = instance.put_rules(rules).header("If-None-Match", "*");
    assert_eq!(send(put).await.status(), 200);
    let (limits, explained) = explain(&instance, json!({ "path": "/" })).await;
    assert_eq!(limits, ["minute", "exports"]);
    assert_eq!(explained["left"][0]["remaining"], 5);
    assert_eq!(explained["left"][1]["remaining"], 2);
    let top = instance.json("/v1/top?limit=exports").await;
    assert_eq!(top["clients"], json!([]));
}
