//! Tests that a token without the role `rules` reads no keys of clients.

use std::time::Duration;

use reqwest::{Method, Response};
use serde_json::{Value, json};
use tower_quota_admin::{ProblemKind, Role};
use tower_quota_dev::RedisServer;
use tower_quota_live::{FileRules, LiveOptions, MemoryRules, NewVersion, RedisRules, RuleStore};

use crate::server::{Instance, options, problem, send};

const READER: &str = "the dashboard's own token";

async fn instance(store: impl RuleStore) -> Instance {
    let options = options().bearer_token_of_role(Role::Read, "dashboard", READER);
    let live = LiveOptions::new().poll_every(Duration::from_millis(10));
    Instance::with_live_options(store, options, live).await
}

async fn with_documents(documents: &[&str]) -> Instance {
    let instance = instance(MemoryRules::new()).await;
    for (number, document) in documents.iter().enumerate() {
        let condition = ["If-None-Match", "If-Match"][number.min(1)];
        let put = send(instance.put_rules(document).header(condition, "*")).await;
        assert_eq!(put.status(), 200, "{}", put.text().await.unwrap());
    }
    instance
}

async fn read(instance: &Instance, path: &str) -> Response {
    send(instance.anonymous(Method::GET, path).bearer_auth(READER)).await
}

/// Returns the answer to a reader, without the text `SECRET`.
async fn answer(instance: &Instance, path: &str) -> Value {
    let response = read(instance, path).await;
    assert_eq!(response.status(), 200, "{path}");
    let text = response.text().await.unwrap();
    assert!(!text.contains("SECRET"), "{path}: {text}");
    serde_json::from_str(&text).unwrap()
}

async fn hash(instance: &Instance, key: &str) -> String {
    let found = instance.client("find", json!({ "key": key })).await;
    format!("hash:{}", found["clients"][0]["hash"].as_str().unwrap())
}

#[tokio::test]
async fn reader_of_documents_sees_hashed_keys() {
    let document = |quota: &str| {
        format!(
            "defaults: {{ key: header x-api-key }}\n\
             limits: [{{ name: minute, quota: 5/minute, unless: {{ header: {{ x-api-key: SECRET_2 }} }} }}]\n\
             overrides: {{ sk_live_SECRET_1: {{ limits: {{ minute: {quota} }} }} }}\n\
             block: [{{ header: {{ x-api-key: SECRET_3 }} }}]\n\
             tests: [{{ request: {{ path: /?api_key=SECRET_4, headers: {{ x-api-key: SECRET_5 }} }}, expect: {{ outcome: counted }} }}]\n"
        )
    };
    let instance = with_documents(&[&document("50/minute"), &document("60/minute")]).await;
    let hash = hash(&instance, "sk_live_SECRET_1").await;
    for path in ["/v1/rules", "/v1/rules/1", "/v1/rules/diff?from=1&to=2"] {
        let text = answer(&instance, path).await.to_string();
        assert!(text.contains(&hash), "{path}: {text}");
        // An author of rules needs the text as it is.
        let text = instance.get(path).await.text().await.unwrap();
        assert!(text.contains("sk_live_SECRET_1"), "{path}: {text}");
    }
    let tag = instance.tag("/v1/rules").await;
    let response = read(&instance, "/v1/rules").await;
    assert_eq!(response.headers()["content-type"], "application/json");
    assert_eq!(response.headers()["etag"], tag);
}

#[tokio::test]
async fn escaped_keys_are_hidden() {
    let document = r#"
# A note of SECRET_0.
defaults: { key: header x-api-key }
limits: [{ name: minute, quota: 5/minute }]
overrides: { "SECRET\/1": { limits: { minute: 6/minute } }, 'it''s SECRET_2': { limits: { minute: 7/minute } } }
block: [{ header: { x-api-key: ['SECRET\*3', 'SECRET_?', 'sk_*'] } }]
"#;
    let instance = with_documents(&[document]).await;
    let rules = answer(&instance, "/v1/rules").await;
    let [slash, quote, star] = [
        hash(&instance, "SECRET/1").await,
        hash(&instance, "it's SECRET_2").await,
        hash(&instance, "SECRET*3").await,
    ];
    let expected = json!({
        slash: { "limits": { "minute": "6/minute" } },
        quote: { "limits": { "minute": "7/minute" } },
    });
    assert_eq!(rules["overrides"], expected);
    let blocked = json!([{ "header": { "x-api-key": [star, "hidden-1", "sk_*"] } }]);
    assert_eq!(rules["block"], blocked);
}

#[tokio::test]
async fn numeric_key_changes_no_quota() {
    let document = "\
        defaults: { key: header x-api-key }\n\
        limits: [{ name: minute, quota: 100/minute }]\n\
        overrides: { 100: { limits: { minute: 100/minute } } }\n";
    let later = document.replace("{ minute: 100", "{ minute: 200");
    let instance = with_documents(&[document, &later]).await;
    let hash = hash(&instance, "100").await;
    let rules = answer(&instance, "/v1/rules/1").await;
    assert_eq!(rules["limits"][0]["quota"], "100/minute");
    let expected = json!({ &hash: { "limits": { "minute": "100/minute" } } });
    assert_eq!(rules["overrides"], expected);
    let diff = answer(&instance, "/v1/rules/diff?from=1").await;
    let expected = json!([{
        "path": format!("overrides.{hash}.limits.minute"),
        "change": "changed",
        "before": "100/minute",
        "after": "200/minute",
    }]);
    assert_eq!(diff["differences"], expected);
}

#[tokio::test]
async fn addresses_stay_apart() {
    let overrides = "limits: [{ name: minute, quota: 5/minute }]\n\
        overrides:\n  192.0.2.1: { limits: { minute: 6/minute } }\n  192.0.2.2: { limits: { minute: 7/minute } }\n";
    let by_address = format!("defaults: {{ key: client_ip }}\n{overrides}");
    let instance = with_documents(&[&by_address]).await;
    let rules = answer(&instance, "/v1/rules").await;
    let [one, two] = [
        hash(&instance, "192.0.2.1").await,
        hash(&instance, "192.0.2.2").await,
    ];
    let expected = json!({
        one: { "limits": { "minute": "6/minute" } },
        two: { "limits": { "minute": "7/minute" } },
    });
    assert_eq!(rules["overrides"], expected);

    // Both scopes accept an address.
    let two_scopes = format!(
        "defaults: {{ key: client_ip }}\n{}",
        overrides.replace(
            "}]",
            "}, { name: hour, quota: 9/hour, key: header x-api-key }]"
        )
    );
    let instance = with_documents(&[&two_scopes]).await;
    let rules = answer(&instance, "/v1/rules").await;
    let expected = json!({
        "hidden-1": { "limits": { "minute": "6/minute" } },
        "hidden-2": { "limits": { "minute": "7/minute" } },
    });
    assert_eq!(rules["overrides"], expected);
}

const VALID: &str = "limits: [{ name: minute, quota: 5/minute }]\n";

/// The problems of this document quote its keys.
const INVALID: &str = "\
    limits: [{ name: minute, quota: 5/minute }]\n\
    overrides: { sk_SECRET_1: { tier: gold, limits: { minute: lots } }, sk_SECRET_2: { tier: gold } }\n";

/// Waits until the health report has an error, and returns the report to a reader.
async fn failing_health(instance: &Instance) -> Value {
    while instance.json("/v1/health").await["rules"]["last_error"].is_null() {
        tokio::task::yield_now().await;
    }
    answer(instance, "/v1/health").await
}

#[tokio::test]
async fn problems_of_invalid_version_are_hidden() {
    let redis = RedisServer::start();
    let store = || RedisRules::new(&redis.url(), "test").unwrap();
    let instance = instance(store()).await;
    let first = instance.put_rules(VALID).header("If-None-Match", "*");
    assert_eq!(send(first).await.status(), 200);
    let invalid = NewVersion::new(INVALID, "eve");
    store().put(None, invalid).await.unwrap();

    let words = "a token with the role `rules` reads the problems";
    let health = failing_health(&instance).await;
    for text in [&health["rules"]["last_error"], &health["problems"][0]] {
        assert!(text.as_str().unwrap().contains(words), "{health}");
    }
    let mut events = read(&instance, "/v1/events").await;
    // The first snapshot is made for the stream, the later ones for all streams.
    for _ in 0..2 {
        let snapshot = events.chunk().await.unwrap().unwrap();
        let snapshot = core::str::from_utf8(&snapshot).unwrap();
        assert!(
            snapshot.contains(words) && !snapshot.contains("SECRET"),
            "{snapshot}"
        );
    }
    let history = answer(&instance, "/v1/rules/history").await;
    let rejected = history["versions"][0]["rejected"].as_str().unwrap();
    assert!(rejected.contains(words), "{rejected}");
    for path in [
        "/v1/rules?newest=true",
        "/v1/rules/2",
        "/v1/rules/diff?from=1&to=2",
    ] {
        let refused = problem(read(&instance, path).await, ProblemKind::InvalidRules).await;
        assert!(!refused.to_string().contains("SECRET"), "{path}: {refused}");
        let detail = refused["detail"].as_str().unwrap();
        assert!(
            detail.contains("3 problems") && detail.contains(words),
            "{detail}"
        );
    }

    // An author of rules has to correct the version.
    for path in ["/v1/health", "/v1/rules/history", "/v1/rules/2"] {
        let text = instance.get(path).await.text().await.unwrap();
        assert!(text.contains("sk_SECRET_1"), "{path}: {text}");
    }
    let events = instance.get("/v1/events").await.chunk().await.unwrap();
    let snapshot = String::from_utf8(events.unwrap().to_vec()).unwrap();
    assert!(snapshot.contains("sk_SECRET_1"), "{snapshot}");
}

#[tokio::test]
async fn reason_of_unreadable_store_is_hidden() {
    let redis = RedisServer::start();
    let store = RedisRules::new(&redis.url(), "test").unwrap();
    let instance = instance(store).await;
    let first = instance.put_rules(VALID).header("If-None-Match", "*");
    assert_eq!(send(first).await.status(), 200);
    for command in [
        r#"HSET quota:rules:{test}:versions 2 "{\"number\":\"SECRET\"}""#,
        "HSET quota:rules:{test}:texts 2 text",
        "HSET quota:rules:{test}:state current 2 revision 9000000000000000",
    ] {
        redis.command(command).unwrap();
    }
    let health = failing_health(&instance).await;
    let words = "a token with the role `rules` reads the problems";
    for text in [&health["rules"]["last_error"], &health["problems"][0]] {
        assert!(text.as_str().unwrap().contains(words), "{health}");
    }
    let health = instance.json("/v1/health").await;
    assert!(health.to_string().contains("SECRET"), "{health}");

    // A reader sees why a silent store fails.
    redis.pause();
    let is_silent = async {
        let reason = async || answer(&instance, "/v1/health").await.to_string();
        while !reason().await.contains("no answer within") {}
    };
    tokio::time::timeout(Duration::from_secs(20), is_silent)
        .await
        .unwrap();
    redis.resume();
}

#[tokio::test]
async fn document_with_hidden_keys_is_not_put() {
    let key = |text: &str| text.replace("KEY", "sk_live_1");
    let document = |key: &str| {
        format!(
            "defaults: {{ key: header x-api-key }}\n\
             limits: [{{ name: minute, quota: 5/minute }}]\n\
             {key}\n"
        )
    };
    for part in [
        "overrides: { KEY: { limits: { minute: 6/minute } } }",
        "block: [{ header: { x-api-key: KEY } }]",
        "block: [{ header: { x-api-key: 'KEY?' } }]",
    ] {
        let instance = with_documents(&[&document(&key(part))]).await;
        let hidden = read(&instance, "/v1/rules").await.text().await.unwrap();
        let checked = instance.request(Method::POST, "/v1/rules/check");
        let checked = checked
            .header("Content-Type", "application/yaml")
            .body(hidden.clone());
        let put = instance.put_rules(&hidden).header("If-Match", "*");
        for request in [checked, put] {
            let refused = problem(send(request).await, ProblemKind::InvalidValue).await;
            let detail = refused["detail"].as_str().unwrap();
            assert!(detail.contains("instead of a key"), "{refused}");
            let name = detail.split('"').nth(1).unwrap();
            assert!(hidden.contains(name), "{name}: {hidden}");
        }
        assert_eq!(instance.number().await, 1);
    }
}

#[tokio::test]
async fn problems_of_included_file_are_hidden() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let path = folder.path().join("rules.yaml");
    write("common.yaml", VALID);
    write(
        "rules.yaml",
        "include: common.yaml\nlimits: [{ name: hour, quota: 9/hour }]\n",
    );
    let instance = instance(FileRules::new(&path).unwrap()).await;
    write("common.yaml", INVALID);

    let health = failing_health(&instance).await;
    let error = health["rules"]["last_error"].as_str().unwrap();
    assert!(error.contains("a token with the role `rules`"), "{error}");
    for path in ["/v1/rules?newest=true", "/v1/rules/history"] {
        let refused = problem(read(&instance, path).await, ProblemKind::Unavailable).await;
        assert!(!refused.to_string().contains("SECRET"), "{path}: {refused}");
    }
    let health = instance.json("/v1/health").await;
    assert!(health.to_string().contains("sk_SECRET_1"), "{health}");
}
