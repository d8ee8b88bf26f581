//! Matches of documents, from conditions that describe themselves.

use serde_json::{Map, Value};
use tower_quota::Described;

use super::Printer;
use super::error::PolicyPrintError;
use crate::document::{KeyRule, Many, Match};
use crate::text::{KeyPattern, KeyText};

type PrintedMatches = Result<Vec<Match>, PolicyPrintError>;

impl Printer {
    /// Returns the matches of which one is enough for a condition.
    pub(super) fn matches(&mut self, described: Option<&Described>, place: &str) -> PrintedMatches {
        let code = || PolicyPrintError::Code {
            place: place.to_owned(),
            part: "condition",
        };
        let one = |matching: Option<Value>| {
            let read = serde_json::from_value(matching.ok_or_else(code)?).map_err(|_| code())?;
            Ok(vec![read])
        };
        match described.ok_or_else(code)? {
            Described::Text(text) => match (text.as_str(), text.strip_prefix("code ")) {
                ("cors_preflight", _) => Ok(vec![Match {
                    cors_preflight: true,
                    ..Match::default()
                }]),
                (_, Some(name)) => one(Some(object("code", name.into()))),
                _ => Err(code()),
            },
            Described::Value(value) => value.downcast_ref::<Vec<Match>>().cloned().ok_or_else(code),
            Described::Fields(fields) => match &fields[..] {
                [("any", Described::List(all))] if !all.is_empty() => {
                    let all = all.iter().map(|one| self.matches(Some(one), place));
                    Ok(all.collect::<Result<Vec<_>, _>>()?.concat())
                }
                [("every", Described::List(all))] if !all.is_empty() => {
                    let all: Result<Vec<_>, _> = all
                        .iter()
                        .map(|one| self.matches(Some(one), place))
                        .collect();
                    Ok(every(all?))
                }
                [("not", excluded)] => Ok(vec![not(self.matches(Some(excluded), place)?)]),
                [("address_in", networks), ("key", key)] => {
                    // Documents compare addresses as their key `client_ip` reads them.
                    self.key(Some(key), place)?;
                    one(to_json(networks).map(|networks| object("network", networks)))
                }
                [("key_in", Described::List(keys)), ("key", key)] => {
                    let key = self.key(Some(key), place)?;
                    self.keys_listed(&key, keys, place)
                }
                [(field, value)] => one(to_json(value).map(|value| object(field, value))),
                _ => Err(code()),
            },
            _ => Err(code()),
        }
    }

    fn keys_listed(&mut self, key: &KeyRule, keys: &[Described], place: &str) -> PrintedMatches {
        let texts = keys.iter().filter_map(|key| {
            if let Described::Text(text) = key {
                Some(text)
            } else {
                None
            }
        });
        let patterns: Vec<KeyPattern> = texts.filter_map(|text| literal(text)).collect();
        if patterns.is_empty() {
            return Err(PolicyPrintError::Code {
                place: place.to_owned(),
                part: "condition",
            });
        }
        let mut matching = Match::default();
        match key {
            KeyRule::One(KeyText::Header(name)) => {
                matching.header.0.insert(name.clone(), Many(patterns));
            }
            KeyRule::One(KeyText::ClientIp { .. }) | KeyRule::First(_) | KeyRule::All(_) => {
                let reason = "a document lists texts of one key only: use `when::address_in`, or several conditions";
                return Err(PolicyPrintError::Conflict {
                    place: place.to_owned(),
                    reason,
                });
            }
            key => {
                if !self.has_default_key {
                    self.has_default_key = true;
                    self.document.defaults.key = Some(key.clone());
                }
                if self.document.defaults.key.as_ref() != Some(key) {
                    let reason = "a document compares lists of keys with one key, that of `defaults`, or with headers";
                    return Err(PolicyPrintError::Conflict {
                        place: place.to_owned(),
                        reason,
                    });
                }
                matching.key = Some(Many(patterns));
            }
        }
        Ok(vec![matching])
    }
}

/// Returns the match of requests that none of these match.
pub(super) fn not(excluded: Vec<Match>) -> Match {
    Match {
        not: Some(Many(excluded)),
        ..Match::default()
    }
}

/// Returns the matches of requests that match each of these.
pub(super) fn every(mut all: Vec<Vec<Match>>) -> Vec<Match> {
    if all.len() == 1 {
        return all.swap_remove(0);
    }
    // In one match if they have no field in common, and otherwise as "none of them does not hold".
    let mut merged = Map::new();
    let has_room = all.iter().all(|matches| {
        let [one] = &matches[..] else { return false };
        let Ok(Value::Object(fields)) = serde_json::to_value(one) else {
            return false;
        };
        fields
            .into_iter()
            .all(|(field, value)| merged.insert(field, value).is_none())
    });
    match serde_json::from_value(Value::Object(merged)) {
        Ok(matching) if has_room => vec![matching],
        _ => vec![not(all.into_iter().map(not).collect())],
    }
}

/// Returns the pattern of one text.
fn literal(text: &str) -> Option<KeyPattern> {
    let escape = |character: char| {
        let slash = matches!(character, '*' | '?' | '\\').then_some('\\');
        slash.into_iter().chain([character])
    };
    text.chars()
        .flat_map(escape)
        .collect::<String>()
        .parse()
        .ok()
}

fn object(field: &str, value: Value) -> Value {
    Value::Object(Map::from_iter([(field.to_owned(), value)]))
}

/// Returns a description as JSON; `None` for values that only one crate knows.
pub(super) fn to_json(described: &Described) -> Option<Value> {
    Some(match described {
        Described::Text(text) => text.as_str().into(),
        Described::Number(number) => (*number).into(),
        Described::List(parts) => parts
            .iter()
            .map(to_json)
            .collect::<Option<Vec<_>>>()?
            .into(),
        Described::Fields(fields) => {
            let fields = fields
                .iter()
                .map(|(name, part)| Some(((*name).to_owned(), to_json(part)?)));
            Value::Object(fields.collect::<Option<_>>()?)
        }
        _ => return None,
    })
}
