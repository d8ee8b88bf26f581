//! Tests the OpenAPI document.

use serde_json::{Map, Value};
use tower_quota_admin::{AdminOptions, Role};
use tower_quota_live::MemoryRules;

use crate::fields;
use crate::server::{Instance, options, send};

#[tokio::test]
async fn document_describes_every_route() {
    let instance = Instance::start().await;
    let document = instance.json("/v1/openapi.json").await;
    assert_eq!(document, tower_quota_admin::openapi());
    assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
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
    let document = tower_quota_admin::openapi();
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
    let document = tower_quota_admin::openapi();
    let operations = document["paths"].as_object().unwrap().values();
    let operations = operations.flat_map(|item| item.as_object().unwrap().values());
    let parameters = operations.flat_map(|operation| operation["parameters"].as_array());
    let mut in_url: Vec<_> = parameters
        .flatten()
        .map(|parameter| match parameter["$ref"].as_str() {
            Some(reference) => document.pointer(&reference[1..]).unwrap(),
            None => parameter,
        })
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

const ROLES: [(&str, Role); 3] = [
    ("read", Role::Read),
    ("operate", Role::Operate),
    ("rules", Role::Rules),
];

#[tokio::test]
async fn operation_names_its_role_and_problems() {
    let token = |name| format!("the token of {name}");
    let mut options = options();
    for (name, role) in ROLES {
        options = options.bearer_token_of_role(role, name, token(name));
    }
    let instance = Instance::with(MemoryRules::new(), options).await;
    for (path, method, operation) in fields::operations() {
        if path == "/v1/ready" {
            continue;
        }
        let needed = &operation["security"][0]["bearer"][0];
        let (_, needed) = ROLES.iter().find(|(name, _)| needed == name).unwrap();
        let description = operation["description"].as_str().unwrap();
        assert!(description.ends_with(&format!("Needs the role `{needed}`.")));
        for (name, role) in ROLES {
            let method = method.to_uppercase().parse().unwrap();
            let path = path.replace("{version}", "1");
            let request = instance.anonymous(method, &path).bearer_auth(token(name));
            let is_refused = send(request).await.status() == 403;
            assert_eq!(is_refused, role < *needed, "{path} {name}");
        }
        let mut statuses = vec!["400", "401", "429", "503"];
        statuses.extend((*needed > Role::Read).then_some("403"));
        if operation["requestBody"].is_object() {
            statuses.extend(["413", "415"]);
        }
        for status in statuses {
            assert!(
                operation["responses"][status].is_object(),
                "{method} {path}: {status}"
            );
        }
    }
    let sample = &tower_quota_admin::openapi()["components"]["schemas"]["SampleRequest"];
    let fields = &sample["properties"];
    assert!(fields["route"].is_object() && fields["keys"].is_object());
}

#[tokio::test]
async fn document_of_own_layer_has_no_token() {
    let options = AdminOptions::new().authenticated_by_own_layer();
    let instance = Instance::with(MemoryRules::new(), options).await;
    let document = instance.json("/v1/openapi.json").await.to_string();
    for name in ["security", "securitySchemes", "bearer"] {
        assert!(!document.contains(&format!("\"{name}\"")), "{name}");
    }
}
