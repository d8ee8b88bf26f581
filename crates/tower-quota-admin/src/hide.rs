//! Hides the keys in texts of documents from readers who may not see keys.

use core::mem;

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
        hide(&mut version.text, &hidden);
        Ok(version)
    }
}

/// Hides keys in the paths and values of a difference.
pub(crate) fn hide_difference(difference: &mut Difference, hidden: &Hidden) {
    hide(&mut difference.path, hidden);
    for value in [&mut difference.before, &mut difference.after] {
        value.iter_mut().for_each(|value| hide_value(value, hidden));
    }
}

fn hide_value(value: &mut Value, hidden: &Hidden) {
    match value {
        Value::String(text) => hide(text, hidden),
        Value::Array(values) => values
            .iter_mut()
            .for_each(|value| hide_value(value, hidden)),
        Value::Object(fields) => {
            for (mut name, mut value) in mem::take(fields) {
                hide(&mut name, hidden);
                hide_value(&mut value, hidden);
                fields.insert(name, value);
            }
        }
        _ => {}
    }
}

/// Replaces whole words only, so that a short key spoils no longer word.
fn hide(text: &mut String, hidden: &Hidden) {
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
        *text = kept;
    }
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
        let mut text = "sk_1: {}\n\"sk_11\": sk_1, sk_111 sk_1-2 (sk_1)".to_owned();
        hide(&mut text, &hidden);
        let expected = "hash:a: {}\n\"hash:b\": hash:a, sk_111 sk_1-2 (hash:a)";
        assert_eq!(text, expected);
    }
}
