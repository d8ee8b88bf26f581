//! Keys of documents, from those that describe themselves.

use tower_quota::Described;
use tower_quota::key::KeyExtractor;

use super::Printer;
use super::conditions::to_json;
use super::error::PolicyPrintError;
use crate::compile;
use crate::document::{ClientIpRule, Document, KeyRule};
use crate::text::KeyText;

/// The way in which all keys of a document read addresses.
pub(super) struct Addresses {
    /// The rule without prefixes; `None` until a key says one.
    rule: Option<ClientIpRule>,
    prefix_v4: u8,
    prefix_v6: u8,
}

impl Addresses {
    pub(super) fn of(document: Option<&Document>) -> Self {
        let own = document.map(|document| &document.client_ip);
        // In the form in which keys describe themselves, to be compared with them.
        let described = own.and_then(|rule| compile::client_ip(rule).ok()?.describe());
        let read = described.as_ref().and_then(read_rule).map(without_prefixes);
        Self {
            rule: read,
            prefix_v4: own.and_then(|rule| rule.prefix_v4).unwrap_or(32),
            prefix_v6: own.and_then(|rule| rule.prefix_v6).unwrap_or(64),
        }
    }

    /// Returns the rule of the document: its own, or what its keys say.
    pub(super) fn into_rule(self, own: ClientIpRule) -> ClientIpRule {
        if own == ClientIpRule::default() {
            self.rule.unwrap_or_default()
        } else {
            own
        }
    }

    fn key(&mut self, rule: ClientIpRule, place: &str) -> Result<KeyText, PolicyPrintError> {
        let v4 = rule.prefix_v4.filter(|bits| *bits != self.prefix_v4);
        let v6 = rule.prefix_v6.filter(|bits| *bits != self.prefix_v6);
        let rule = without_prefixes(rule);
        if self.rule.get_or_insert_with(|| rule.clone()) != &rule {
            let reason =
                "a document reads all addresses in one way: trust the same proxies in all keys";
            return Err(PolicyPrintError::Conflict {
                place: place.to_owned(),
                reason,
            });
        }
        Ok(KeyText::ClientIp { v4, v6 })
    }
}

fn read_rule(described: &Described) -> Option<ClientIpRule> {
    let Described::Fields(fields) = described else {
        return None;
    };
    let [("client_ip", rule)] = &fields[..] else {
        return None;
    };
    let mut rule: ClientIpRule = serde_json::from_value(to_json(rule)?).ok()?;
    // The default is not written.
    rule.header = rule
        .header
        .filter(|header| header.as_str() != "x-forwarded-for");
    Some(rule)
}

fn without_prefixes(rule: ClientIpRule) -> ClientIpRule {
    ClientIpRule {
        prefix_v4: None,
        prefix_v6: None,
        ..rule
    }
}

impl Printer {
    /// Returns the key of a document.
    pub(super) fn key(
        &mut self,
        described: Option<&Described>,
        place: &str,
    ) -> Result<KeyRule, PolicyPrintError> {
        let code = || PolicyPrintError::Code {
            place: place.to_owned(),
            part: "key",
        };
        let described = described.ok_or_else(code)?;
        if let Some(rule) = read_rule(described) {
            return self.addresses.key(rule, place).map(KeyRule::One);
        }
        match described {
            Described::Text(text) => {
                let key: KeyText = text.parse().map_err(|error| PolicyPrintError::Text {
                    place: place.to_owned(),
                    error,
                })?;
                // A name that begins or ends with a space is not read back.
                if key.to_string() == *text {
                    Ok(KeyRule::One(key))
                } else {
                    Err(code())
                }
            }
            Described::List(keys) => self.keys(keys, place).map(KeyRule::First),
            Described::Fields(fields) => match &fields[..] {
                [("all", Described::List(keys))] => self.keys(keys, place).map(KeyRule::All),
                _ => Err(code()),
            },
            _ => Err(code()),
        }
    }

    fn keys(&mut self, keys: &[Described], place: &str) -> Result<Vec<KeyRule>, PolicyPrintError> {
        keys.iter().map(|key| self.key(Some(key), place)).collect()
    }
}
