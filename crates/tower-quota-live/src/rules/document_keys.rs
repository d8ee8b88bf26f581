//! Finds the keys that a document names, for readers who may not see keys.

use serde_json::Value;

use super::{BlockTarget, LiveRules};
use crate::blocks::Target;
use crate::error::ChangeError;
use crate::follow::Work;

/// The fields with conditions on requests, which name keys.
const CONDITIONS: [&str; 8] = [
    "assign", "skip", "allow", "block", "match", "when", "unless", "not",
];

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
    collect(document, &mut keys);
    // A pattern such as `sk_free_*` is no key. A header may have the name of a tier, which clients may see.
    keys.retain(|key| !key.is_empty() && !key.contains('*') && document["tiers"][key].is_null());
    keys.sort_unstable_by(|one, other| (other.len(), other).cmp(&(one.len(), one)));
    keys.dedup();
    keys
}

/// Collects the keys from the conditions and sample requests in a part of a document.
fn collect(part: &Value, keys: &mut Vec<String>) {
    if let Some(fields) = part.as_object() {
        for (name, field) in fields {
            if CONDITIONS.contains(&name.as_str()) {
                for item in items(field) {
                    texts(&item["key"], keys);
                    texts(&item["header"], keys);
                    texts(&item["claim"], keys);
                }
            }
            if name == "request" {
                texts(&field["headers"], keys);
                texts(&field["keys"], keys);
                let path = field["path"].as_str().unwrap_or_default();
                keys.extend(path.split_once('?').map(|(_, query)| query.to_owned()));
            }
            collect(field, keys);
        }
    }
    for item in part.as_array().into_iter().flatten() {
        collect(item, keys);
    }
}

/// Returns the values of a field that may have one value or a list.
fn items(field: &Value) -> &[Value] {
    match field {
        Value::Array(values) => values,
        one => core::slice::from_ref(one),
    }
}

fn texts(value: &Value, keys: &mut Vec<String>) {
    match value {
        Value::String(text) => keys.push(text.clone()),
        Value::Array(values) => values.iter().for_each(|value| texts(value, keys)),
        Value::Object(fields) => fields.values().for_each(|value| texts(value, keys)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn keys_of_all_parts_are_found() {
        let document = json!({
            "defaults": { "key": "header x-api-key" },
            "tiers": { "gold": { "limits": { "minute": "9/minute" } } },
            "overrides": { "sk_1": { "tier": "gold" } },
            "assign": [
                { "key": "sk_free_*", "tier": "free" },
                { "key": "sk_22", "tier": "gold" },
                { "when": { "header": { "x-plan": "gold" }, "claim": { "sub": ["sk_f01", "sk_f02"] } }, "tier": "gold" },
            ],
            "allow": [{ "not": [{ "claim": { "sub": "sk_f03" } }] }],
            "block": [{ "key": ["sk_333", "sk_1"] }, { "network": "10.0.0.0/8" }, { "header": { "x-api-key": "sk_f04" } }],
            "skip": [{ "header": { "cookie": "sk_f05" } }],
            "limits": [{ "name": "minute", "key": "header x-api-key", "when": { "key": "sk_f06" }, "unless": [{ "key": "sk_f07" }] }],
            "routes": [{
                "match": { "header": { "x-api-key": "sk_f08" } },
                "limits": [{ "name": "route", "when": { "header": { "x-api-key": ["sk_f09"] } } }],
            }],
            "tests": [{ "request": {
                "path": "/search?api_key=sk_f10",
                "headers": { "x-api-key": "sk_4444" },
                "keys": { "code tenant": "sk_f11" },
            } }],
        });
        let mut expected = vec!["api_key=sk_f10".to_owned(), "sk_4444".to_owned()];
        let of_conditions = [11, 9, 8, 7, 6, 5, 4, 3, 2, 1];
        expected.extend(of_conditions.map(|number| format!("sk_f{number:02}")));
        expected.extend(["sk_333", "sk_22", "sk_1"].map(str::to_owned));
        assert_eq!(super::keys_of(&document), expected);
    }
}
