//! Hides the keys in texts of documents from readers who may not see keys.

use axum::extract::FromRequestParts;
use http::request::Parts;
use serde_json::Value;
use tower_quota_live::Version;
use tower_quota_rules::Difference;

use crate::api::{Api, CheckPlace};
use crate::auth::Role;
use crate::problem::{Problem, Result};

/// How the caller sees the keys in documents.
pub(crate) enum SeesKeys {
    /// All callers if the options allow it, otherwise those who may change the rules.
    Readable,
    /// To find the keys takes the place of a check.
    Hashed { _place: CheckPlace },
}

impl FromRequestParts<Api> for SeesKeys {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self> {
        let role = parts.extensions.get::<Role>();
        if api.show_keys || role.is_none_or(|role| *role == Role::Rules) {
            return Ok(Self::Readable);
        }
        let place = CheckPlace::from_request_parts(parts, api).await?;
        Ok(Self::Hashed { _place: place })
    }
}

/// Keys, each with the text that replaces it.
pub(crate) type Hidden = Vec<(String, String)>;

impl SeesKeys {
    /// Returns the keys of a version that the caller may not see.
    pub(crate) async fn hidden(&self, api: &Api, version: &Version) -> Result<Hidden> {
        if matches!(self, Self::Readable) {
            return Ok(Hidden::new());
        }
        Ok(api.live.document_keys(version.text.as_str()).await?)
    }

    /// Returns a version whose text the caller may see.
    pub(crate) async fn version(&self, api: &Api, mut version: Version) -> Result<Version> {
        let hidden = self.hidden(api, &version).await?;
        version.text = hide(version.text, &hidden);
        Ok(version)
    }
}

/// Hides keys in the paths and values of a difference.
pub(crate) fn hide_difference(mut difference: Difference, hidden: &Hidden) -> Difference {
    difference.path = hide(difference.path, hidden);
    for value in [&mut difference.before, &mut difference.after] {
        *value = value.take().map(|value| hide_value(value, hidden));
    }
    difference
}

fn hide_value(value: Value, hidden: &Hidden) -> Value {
    match value {
        Value::String(text) => Value::String(hide(text, hidden)),
        Value::Array(values) => {
            let values = values.into_iter();
            values.map(|value| hide_value(value, hidden)).collect()
        }
        Value::Object(fields) => {
            let fields = fields.into_iter();
            let hide_field = |(name, value)| (hide(name, hidden), hide_value(value, hidden));
            Value::Object(fields.map(hide_field).collect())
        }
        other => other,
    }
}

/// Replaces whole words only, so that a short key spoils no longer word.
fn hide(mut text: String, hidden: &Hidden) -> String {
    for (key, hash) in hidden {
        let mut kept = String::with_capacity(text.len());
        let mut rest = text.as_str();
        while let Some(at) = rest.find(key.as_str()) {
            let (before, after) = (&rest[..at], &rest[at + key.len()..]);
            let is_word = !before.ends_with(is_of_word) && !after.starts_with(is_of_word);
            kept.push_str(before);
            kept.push_str(if is_word { hash } else { key });
            rest = after;
        }
        kept.push_str(rest);
        text = kept;
    }
    text
}

fn is_of_word(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_keys_are_hidden() {
        let hidden = vec![
            ("sk_11".to_owned(), "hash:b".to_owned()),
            ("sk_1".to_owned(), "hash:a".to_owned()),
        ];
        let text = "sk_1: {}\n\"sk_11\": sk_1, sk_111 sk_1-2 (sk_1)".to_owned();
        let expected = "hash:a: {}\n\"hash:b\": hash:a, sk_111 sk_1-2 (hash:a)";
        assert_eq!(hide(text, &hidden), expected);
    }
}
