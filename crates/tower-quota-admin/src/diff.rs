//! Differences between two documents, by path.

use serde::Serialize;
use serde_json::Value;
use tower_quota_rules::Document;
use utoipa::ToSchema;

/// A value that differs between two documents.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct Difference {
    /// The path of the value, such as `tiers.pro.limits.minute` or `limits[minute].quota`.
    path: String,
    /// The value before; absent if it was added.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<Value>,
    /// The value after; absent if it was removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<Value>,
}

/// Returns the values that differ between two documents, whatever their formats.
pub(crate) fn differences(before: &Document, after: &Document) -> Vec<Difference> {
    // Documents are trees of texts and numbers, which JSON can always hold.
    let value = |document| serde_json::to_value(document).unwrap_or_default();
    let mut found = Vec::new();
    compare(String::new(), Some(&value(before)), Some(&value(after)), &mut found);
    found
}

fn compare(path: String, before: Option<&Value>, after: Option<&Value>, found: &mut Vec<Difference>) {
    match (before, after) {
        (before, after) if before == after => {}
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            let added = after.keys().filter(|name| !before.contains_key(*name));
            for name in before.keys().chain(added) {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                compare(path, before.get(name), after.get(name), found);
            }
        }
        (Some(Value::Array(before)), Some(Value::Array(after))) => {
            let labels =
                |list: &[Value]| list.iter().enumerate().map(|(position, item)| label(position, item)).collect();
            let (old, new): (Vec<String>, Vec<String>) = (labels(before), labels(after));
            let at = |labels: &[String], label: &String| labels.iter().position(|known| known == label);
            let added = new.iter().filter(|label| at(&old, label).is_none());
            for label in old.iter().chain(added) {
                let before = at(&old, label).and_then(|position| before.get(position));
                let after = at(&new, label).and_then(|position| after.get(position));
                compare(format!("{path}[{label}]"), before, after, found);
            }
        }
        (before, after) => found.push(Difference { path, before: before.cloned(), after: after.cloned() }),
    }
}

/// Names an item of a list: by its name if it has one, or else by its position.
fn label(position: usize, item: &Value) -> String {
    item.get("name").and_then(Value::as_str).map_or_else(|| position.to_string(), str::to_owned)
}
