//! Tests of the published JSON Schema.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests may panic"
)]

use std::fs;
use std::path::Path;

#[test]
fn published_schema_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/rules.schema.json");
    let mut fresh = serde_json::to_string_pretty(&tower_quota_rules::schema()).expect("JSON");
    fresh.push('\n');
    if std::env::var_os("REWRITE").is_some() {
        fs::write(&path, &fresh).expect("written");
    }
    assert_eq!(
        fs::read_to_string(&path).unwrap_or_default(),
        fresh,
        "run with REWRITE=1"
    );
}

/// Collects the names of all fields in a schema.
fn fields(schema: &serde_json::Value, found: &mut Vec<String>) {
    match schema {
        serde_json::Value::Object(map) => {
            for (name, value) in map {
                if name == "properties" {
                    found.extend(
                        value
                            .as_object()
                            .into_iter()
                            .flatten()
                            .map(|(field, _)| field.clone()),
                    );
                }
                fields(value, found);
            }
        }
        serde_json::Value::Array(all) => all.iter().for_each(|value| fields(value, found)),
        _ => {}
    }
}

#[test]
fn reference_names_every_field() {
    let page = include_str!("../../../../docs/reference/rules.md");
    let mut found = Vec::new();
    fields(tower_quota_rules::schema().as_value(), &mut found);
    assert!(found.len() > 60);
    for field in found {
        let named = [
            format!("`{field}`"),
            format!("{field}:"),
            format!("{field},"),
            format!(" {field} "),
        ];
        assert!(
            named.iter().any(|text| page.contains(text.as_str())),
            "docs/reference/rules.md does not name {field}"
        );
    }
}
