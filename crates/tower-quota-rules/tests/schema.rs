//! The published JSON Schema.

use std::fs;
use std::path::Path;

#[test]
fn published_schema_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/rules.schema.json");
    let mut fresh = serde_json::to_string_pretty(&tower_quota_rules::schema()).expect("JSON");
    fresh.push('\n');
    if std::env::var_os("REWRITE").is_some() {
        fs::write(&path, &fresh).expect("written");
    }
    assert_eq!(fs::read_to_string(&path).unwrap_or_default(), fresh, "run with REWRITE=1");
}
