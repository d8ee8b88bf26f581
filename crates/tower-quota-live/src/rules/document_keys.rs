//! Finds the keys that a document names, for readers who may not see keys.

use serde_json::Value;

use super::{BlockTarget, LiveRules};
use crate::blocks::Target;
use crate::error::ChangeError;
use crate::follow::Work;

/// The parts of a document with a field `key` in each item.
const LISTS: [&str; 4] = ["assign", "allow", "block", "skip"];

impl LiveRules {
    /// Returns the keys that a document names, each with `hash:` and the hash of the client, or
    /// `hidden` if the key fits no single scope. The longest key is first.
    ///
    /// Replace the keys in texts for readers who may not see keys.
    ///
    /// # Errors
    /// Returns [`ChangeError::Invalid`] if the document is unreadable.
    pub async fn document_keys(
        &self,
        text: impl Into<String>,
    ) -> Result<Vec<(String, String)>, ChangeError> {
        let text = text.into();
        let reading = self.shared.work(Work::Check, move |shared| {
            let rules = shared.read(&text)?;
            // A document always serializes.
            Ok(keys_of(
                &serde_json::to_value(rules.document()).unwrap_or_default(),
            ))
        });
        let keys: Result<Vec<String>, ChangeError> = reading.await?;
        let hashed = |key: String| {
            let target = self.block_target(BlockTarget::Text(&key));
            let hash = match target {
                Ok(Target::Key { hash, .. }) => format!("hash:{hash}"),
                _ => "hidden".to_owned(),
            };
            (key, hash)
        };
        Ok(keys?.into_iter().map(hashed).collect())
    }
}

fn keys_of(document: &Value) -> Vec<String> {
    let mut keys = Vec::new();
    if let Some(overrides) = document["overrides"].as_object() {
        keys.extend(overrides.keys().cloned());
    }
    for list in LISTS {
        for item in items(&document[list]) {
            texts(&item["key"], &mut keys);
        }
    }
    for test in items(&document["tests"]) {
        if let Some(headers) = test["request"]["headers"].as_object() {
            headers.values().for_each(|value| texts(value, &mut keys));
        }
    }
    // A pattern such as `sk_free_*` is no key.
    keys.retain(|key| !key.is_empty() && !key.contains('*'));
    keys.sort_unstable_by(|one, other| (other.len(), other).cmp(&(one.len(), one)));
    keys.dedup();
    keys
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn texts(value: &Value, keys: &mut Vec<String>) {
    match value {
        Value::String(text) => keys.push(text.clone()),
        Value::Array(values) => values.iter().for_each(|value| texts(value, keys)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn keys_of_all_parts_are_found() {
        let document = json!({
            "overrides": { "sk_1": { "tier": "pro" } },
            "assign": [{ "key": "sk_free_*", "tier": "free" }, { "key": "sk_22", "tier": "pro" }],
            "block": [{ "key": ["sk_333", "sk_1"] }, { "network": "10.0.0.0/8" }],
            "tests": [{ "request": { "headers": { "x-api-key": "sk_4444" } } }],
        });
        let expected = ["sk_4444", "sk_333", "sk_22", "sk_1"];
        assert_eq!(super::keys_of(&document), expected);
    }
}
