//! Tests the OpenAPI document.

use serde_json::{Map, Value};

use crate::server::{Instance, send};

#[tokio::test]
async fn document_describes_every_route() {
    let instance = Instance::start().await;
    let document = instance.json("/v1/openapi.json").await;
    assert_eq!(
        document,
        serde_json::to_value(tower_quota_admin::openapi()).unwrap()
    );
    let paths = document["paths"].as_object().unwrap();
    let methods = ["get", "put", "post", "delete", "patch"];
    for (path, item) in paths {
        // The router knows the path, and answers undocumented methods with 405.
        let path = path.replace("{version}", "1");
        for method in methods {
            let upper = method.to_uppercase().parse().unwrap();
            let status = send(instance.request(upper, &path)).await.status();
            assert_eq!(
                status == 405,
                item.get(method).is_none(),
                "{method} {path}: {status}"
            );
        }
    }
    assert_eq!(paths.len(), 21);
}

#[test]
fn schemas_name_every_field() {
    let document = serde_json::to_value(tower_quota_admin::openapi()).unwrap();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    for (name, schema) in schemas {
        assert_described(name, schema, schemas);
    }
    let block = &schemas["Block"]["allOf"][1]["properties"];
    assert_eq!(
        block["until"]["$ref"], "#/components/schemas/Time",
        "{block}"
    );
    for name in ["AuditRecord", "LiveState", "RulesProblem", "VersionInfo"] {
        assert!(schemas[name]["properties"].is_object(), "{name}");
    }
}

/// Asserts that each object in a schema is described, and that each reference is defined.
fn assert_described(path: &str, schema: &Value, schemas: &Map<String, Value>) {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.strip_prefix("#/components/schemas/");
        assert!(
            name.is_some_and(|name| schemas.contains_key(name)),
            "{path}: {reference} is not defined"
        );
    }
    let is_object = schema["type"] == "object"
        || schema["type"]
            .as_array()
            .is_some_and(|types| types.contains(&"object".into()));
    let is_described =
        schema["properties"].is_object() || schema["additionalProperties"].is_object();
    assert!(
        !is_object || is_described,
        "{path} is a plain object: {schema}"
    );
    match schema {
        Value::Object(parts) => parts
            .iter()
            .for_each(|(name, part)| assert_described(&format!("{path}.{name}"), part, schemas)),
        Value::Array(parts) => parts
            .iter()
            .for_each(|part| assert_described(path, part, schemas)),
        _ => {}
    }
}

#[test]
fn keys_of_clients_are_in_no_url() {
    let document = serde_json::to_value(tower_quota_admin::openapi()).unwrap();
    let operations = document["paths"].as_object().unwrap().values();
    let operations = operations.flat_map(|item| item.as_object().unwrap().values());
    let parameters = operations.flat_map(|operation| operation["parameters"].as_array());
    let mut in_url: Vec<_> = parameters
        .flatten()
        .filter(|parameter| parameter["in"] != "header")
        .map(|parameter| parameter["name"].as_str().unwrap())
        .collect();
    in_url.sort_unstable();
    in_url.dedup();
    // Access logs of proxies contain these parameters, so keys travel in bodies.
    let known = "allow_empty by count from limit newest prefix show_keys to version window";
    for name in in_url {
        assert!(known.split(' ').any(|known| known == name), "{name}");
    }
}

#[test]
fn operation_names_its_role() {
    let document = serde_json::to_value(tower_quota_admin::openapi()).unwrap();
    for (method, path, role) in [
        ("get", "/v1/rules", "read"),
        ("post", "/v1/clients/peek", "read"),
        ("post", "/v1/clients/grant", "operate"),
        ("put", "/v1/overrides", "operate"),
        ("put", "/v1/rules", "rules"),
    ] {
        let operation = &document["paths"][path][method];
        assert_eq!(operation["security"][0]["bearer"][0], role, "{path}");
        let description = operation["description"].as_str().unwrap();
        assert!(description.ends_with(&format!("Needs the role `{role}`.")));
        assert_eq!(operation["responses"]["403"].is_object(), role != "read");
    }
    let sample = &document["components"]["schemas"]["SampleRequest"]["properties"];
    assert!(sample["route"].is_object() && sample["keys"].is_object());
}
