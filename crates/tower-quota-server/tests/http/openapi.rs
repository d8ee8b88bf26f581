//! Compares the routes and their answers with the OpenAPI document.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use reqwest::Method;
use serde_json::{Value, json};
use tower_quota_server::http::openapi;

use crate::server::{Server, send, status};

static DOCUMENT: LazyLock<Value> = LazyLock::new(openapi);

/// Asserts that an answer of a `POST` has the documented fields.
pub(crate) fn check(path: &str, status: u16, answer: &Value) {
    let path = match path.strip_prefix("/v1/check/") {
        Some(_) => "/v1/check/{id}/commit",
        None => path,
    };
    let response = resolve(&DOCUMENT["paths"][path]["post"]["responses"][status.to_string()]);
    let mut media = response["content"].as_object().unwrap().iter();
    let (_, media) = media.find(|(kind, _)| kind.ends_with("json")).unwrap();
    compare(path, &media["schema"], answer);
}

fn compare(place: &str, schema: &'static Value, value: &Value) {
    let schema = resolve(schema);
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    assert_eq!(schema["type"], kind, "{place}");
    if let Some(choices) = schema["enum"].as_array() {
        assert!(choices.contains(value), "{place}: {value}");
    }
    for name in schema["required"].as_array().into_iter().flatten() {
        let name = name.as_str().unwrap();
        assert!(value.get(name).is_some(), "{place} lacks {name}: {value}");
    }
    for element in value.as_array().into_iter().flatten() {
        compare(place, &schema["items"], element);
    }
    for (name, part) in value.as_object().into_iter().flatten() {
        let place = format!("{place}.{name}");
        match schema["properties"].get(name) {
            Some(schema) => compare(&place, schema, part),
            None if schema["additionalProperties"] == true => {}
            None => compare(&place, &schema["additionalProperties"], part),
        }
    }
}

fn resolve(part: &'static Value) -> &'static Value {
    match part["$ref"].as_str() {
        Some(reference) => DOCUMENT.pointer(&reference[1..]).unwrap(),
        None => part,
    }
}

#[tokio::test]
async fn document_describes_every_route() {
    let server = Server::start("limits: [{ name: minute, quota: 9/minute, key: none }]").await;
    let served = send(server.request(Method::GET, "/v1/openapi.json")).await;
    assert_eq!(served.json::<Value>().await.unwrap(), *DOCUMENT);
    assert_eq!(DOCUMENT["info"]["version"], env!("CARGO_PKG_VERSION"));
    let paths = DOCUMENT["paths"].as_object().unwrap();
    let known: BTreeSet<&str> = paths.keys().map(String::as_str).collect();
    let routes = [
        "/json",
        "/v1/auth",
        "/v1/check",
        "/v1/check/{id}/commit",
        "/v1/openapi.json",
    ];
    assert_eq!(known, BTreeSet::from(routes));
    for (path, item) in paths.iter().filter(|(path, _)| *path != "/v1/auth") {
        for method in ["get", "put", "post", "delete", "patch"] {
            let upper = method.to_uppercase().parse().unwrap();
            let is_known = status(server.request(upper, &path.replace("{id}", "0"))).await != 405;
            assert_eq!(is_known, item.get(method).is_some(), "{method} {path}");
        }
    }
}

#[tokio::test]
async fn answers_have_every_documented_field() {
    let rules =
        "defaults: { key: none }\nlimits: [{ name: minute, quota: 1/minute, settle: handler }]";
    let server = Server::start(rules).await;
    let admitted = server.call("/v1/check", json!({ "reserve": "9s" })).await;
    let refused = server.call("/v1/check", json!({})).await;
    for (schema, part) in [
        ("Answer", ""),
        ("Limit", "/limits/0"),
        ("Reservation", "/reservation"),
        ("Problem", "/problem"),
    ] {
        let answers = [&admitted, &refused]
            .into_iter()
            .filter_map(|answer| answer.pointer(part));
        let seen: BTreeSet<&String> = answers
            .flat_map(|part| part.as_object().unwrap().keys())
            .collect();
        let properties = DOCUMENT["components"]["schemas"][schema]["properties"]
            .as_object()
            .unwrap();
        assert_eq!(seen, properties.keys().collect(), "{schema}");
    }
}

#[test]
fn call_has_every_documented_field() {
    let schemas = &DOCUMENT["components"]["schemas"];
    let call = [
        "method", "path", "host", "address", "headers", "keys", "cost", "peek", "reserve",
    ];
    for (schema, fields) in [("Call", &call[..]), ("Commit", &["cost", "costs"])] {
        let properties = schemas[schema]["properties"].as_object().unwrap();
        let documented: BTreeSet<&str> = properties.keys().map(String::as_str).collect();
        assert_eq!(documented, fields.iter().copied().collect(), "{schema}");
    }
}
