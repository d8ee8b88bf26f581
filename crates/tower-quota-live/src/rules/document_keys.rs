//! Gives documents to readers who may not see keys.

use core::cell::Cell;
use core::mem;
use std::collections::{HashMap, HashSet};

use tower_quota_rules::{Document, KeyPattern, LimitRule, Many, Match, NameText, SampleRequest};

use super::LiveRules;
use crate::error::ChangeError;
use crate::follow::Work;

impl LiveRules {
    /// Returns a document as JSON, with the hashes of clients instead of their keys.
    ///
    /// A key becomes `hash:` and the hash of the client, as in lists and audit records. If a key fits no single scope,
    /// or if a text may contain a key, you get `hidden-1`, `hidden-2` and so on. Comments are absent. Patterns with a
    /// star and the names of tiers stay.
    ///
    /// # Errors
    /// Returns [`ChangeError::Invalid`] if the document is unreadable. Its problems may quote keys.
    pub async fn hidden_document(&self, text: impl Into<String>) -> Result<String, ChangeError> {
        let (live, text) = (self.clone(), text.into());
        let hiding = self.shared.work(Work::Check, move |shared| {
            let mut document = shared.read(&text)?.document().clone();
            live.hide_keys(&mut [&mut document]);
            Ok(document.to_text())
        });
        hiding.await?
    }

    pub(super) fn hide_keys(&self, documents: &mut [&mut Document]) {
        let scopes = self.keys();
        let hash = |text: &str| {
            let keys = scopes.iter().filter_map(|scope| scope.parse(text));
            let mut keys = keys.filter(|key| !key.as_bytes().is_empty());
            let key = keys.next()?;
            let is_single = keys.all(|other| other == key);
            is_single.then(|| self.key_hash(&key))
        };
        let mut names = HiddenNames::new(&hash);
        for document in documents {
            names.hide(document);
        }
    }
}

/// Refuses a document with [hidden](LiveRules::hidden_document) keys, which match no clients.
pub(crate) fn refuse_hidden_keys(document: &Document) -> Result<(), ChangeError> {
    let found = Cell::new(None);
    let note = |key: &str| {
        if is_hidden_name(key) {
            found.set(Some(key.to_owned()));
        }
        None
    };
    HiddenNames::new(&note).hide(&mut document.clone());
    match found.into_inner() {
        None => Ok(()),
        Some(name) => Err(ChangeError::Refused(format!(
            "the document has {name:?} instead of a key, as roles read it that may not see keys: change the document that \
             a token with the role `rules` reads"
        ))),
    }
}

fn is_hidden_name(key: &str) -> bool {
    let has = |prefix, is_rest: fn(&str) -> bool| key.strip_prefix(prefix).is_some_and(is_rest);
    has("hash:", |hash| {
        hash.len() == 16 && u64::from_str_radix(hash, 16).is_ok()
    }) || has("hidden-", |number| number.parse::<usize>().is_ok())
}

/// The names that replace keys.
struct HiddenNames<'a> {
    hash: &'a dyn Fn(&str) -> Option<String>,
    numbers: HashMap<String, usize>,
    /// The tiers of the document, which clients may see.
    tiers: HashSet<NameText>,
}

impl<'a> HiddenNames<'a> {
    fn new(hash: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self {
            hash,
            numbers: HashMap::new(),
            tiers: HashSet::new(),
        }
    }

    fn of_key(&mut self, key: &str) -> String {
        match (self.hash)(key) {
            Some(hash) => format!("hash:{hash}"),
            None => self.of_text(key),
        }
    }

    fn of_text(&mut self, text: &str) -> String {
        let next = self.numbers.len() + 1;
        let number = self.numbers.entry(text.to_owned()).or_insert(next);
        format!("hidden-{number}")
    }

    fn hide(&mut self, document: &mut Document) {
        let Document {
            tiers,
            limits,
            assign,
            overrides,
            routes,
            skip,
            allow,
            block,
            tests,
            ..
        } = document;
        for (key, rule) in mem::take(overrides) {
            let mut name = self.of_key(&key);
            // Two addresses of an IPv6 network are the same client.
            if overrides.contains_key(name.as_str()) {
                name = self.of_text(&key);
            }
            overrides.insert(name.into(), rule);
        }
        self.tiers = tiers.keys().cloned().collect();
        for rule in assign {
            self.hide_in_patterns(rule.key.as_mut(), false);
            self.hide_in_conditions(rule.when.as_mut());
        }
        for route in routes {
            self.hide_in_match(&mut route.matching);
            self.hide_in_limits(&mut route.limits);
        }
        self.hide_in_limits(limits);
        for matching in skip.iter_mut().chain(allow).chain(block) {
            self.hide_in_match(matching);
        }
        for test in tests {
            self.hide_in_request(&mut test.request);
        }
    }

    fn hide_in_limits(&mut self, limits: &mut [LimitRule]) {
        for limit in limits {
            self.hide_in_conditions(limit.when.as_mut());
            self.hide_in_conditions(limit.unless.as_mut());
        }
    }

    fn hide_in_conditions(&mut self, conditions: Option<&mut Many<Match>>) {
        for matching in conditions.into_iter().flat_map(|many| &mut many.0) {
            self.hide_in_match(matching);
        }
    }

    fn hide_in_match(&mut self, matching: &mut Match) {
        self.hide_in_patterns(matching.key.as_mut(), false);
        // A header may have the name of a tier.
        let values = matching.header.values_mut();
        for patterns in values.chain(matching.claim.values_mut()) {
            self.hide_in_patterns(Some(patterns), true);
        }
        self.hide_in_conditions(matching.not.as_mut());
    }

    fn hide_in_patterns(&mut self, patterns: Option<&mut Many<KeyPattern>>, shows_tiers: bool) {
        for pattern in patterns.into_iter().flat_map(|many| &mut many.0) {
            let (literal, is_key) = pattern.literal_prefix();
            let literal = String::from_utf8_lossy(&literal);
            let name = match is_key {
                true if shows_tiers && self.tiers.contains(&*literal) => continue,
                true => self.of_key(&literal),
                false if has_star(pattern.as_str()) => continue,
                false => self.of_text(pattern.as_str()),
            };
            if let Ok(name) = name.parse() {
                *pattern = name;
            }
        }
    }

    fn hide_in_request(&mut self, request: &mut SampleRequest) {
        for value in request.headers.values_mut().flat_map(|many| &mut many.0) {
            if !self.tiers.contains(&**value) {
                *value = self.of_key(value).into();
            }
        }
        for key in request.keys.values_mut() {
            *key = self.of_key(key);
        }
        if let Some(path) = &mut request.path
            && let Some((before, query)) = path.split_once('?')
        {
            *path = format!("{before}?{}", self.of_text(query)).into();
        }
    }
}

/// Returns whether a pattern such as `sk_free_*` has a star that no backslash escapes.
fn has_star(pattern: &str) -> bool {
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '*' => return true,
            '\\' => drop(letters.next()),
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use tower_quota_rules::Document;

    use super::HiddenNames;

    #[test]
    fn keys_of_all_parts_are_hidden() {
        let document = r#"
defaults: { key: header x-api-key }
limits: [{ name: minute, quota: 9/minute, when: { key: sk_1 }, unless: [{ key: sk_2 }, { key: sk_3 }] }]
tiers: { gold: { limits: { minute: 9/minute } }, free: {} }
overrides: { sk_4: { tier: gold }, gold: { tier: free } }
assign:
  - { key: "sk_free_*", tier: free }
  - { key: sk_5, tier: gold }
  - { when: { header: { x-plan: gold }, claim: { sub: [sk_6, sk_7] } }, tier: gold }
allow: [{ not: [{ claim: { sub: sk_8 } }, { key: "sk_9?" }] }]
block: [{ key: [sk_10, sk_4, "sk_\\*11"] }, { network: 10.0.0.0/8 }]
skip: [{ header: { cookie: "sk_\\*12?" } }]
routes:
  - match: { header: { x-api-key: sk_13 } }
    limits: [{ name: route, quota: 1/day, when: { header: { x-api-key: [sk_14] } } }]
tests:
  - request:
      path: /search?api_key=sk_15
      headers: { x-api-key: sk_16, x-plan: gold }
      keys: { code tenant: sk_17 }
    expect: {}
"#;
        let mut document = Document::parse(document).unwrap();
        let of_pattern = |key: &str| (!key.ends_with("_4")).then(|| key.replace("sk_", "h"));
        HiddenNames::new(&of_pattern).hide(&mut document);
        let text = document.to_text();
        assert_eq!(text.matches("sk_").count(), 1, "{text}");
        assert!(text.contains("sk_free_*"), "{text}");
        let expected = Document::parse(
            r#"
defaults: { key: header x-api-key }
limits: [{ name: minute, quota: 9/minute, when: { key: "hash:h1" }, unless: [{ key: "hash:h2" }, { key: "hash:h3" }] }]
tiers: { gold: { limits: { minute: 9/minute } }, free: {} }
overrides: { hidden-1: { tier: gold }, "hash:gold": { tier: free } }
assign:
  - { key: "sk_free_*", tier: free }
  - { key: "hash:h5", tier: gold }
  - { when: { header: { x-plan: gold }, claim: { sub: ["hash:h6", "hash:h7"] } }, tier: gold }
allow: [{ not: [{ claim: { sub: "hash:h8" } }, { key: hidden-3 }] }]
block: [{ key: ["hash:h10", hidden-1, "hash:h*11"] }, { network: 10.0.0.0/8 }]
skip: [{ header: { cookie: hidden-2 } }]
routes:
  - match: { header: { x-api-key: "hash:h13" } }
    limits: [{ name: route, quota: 1/day, when: { header: { x-api-key: ["hash:h14"] } } }]
tests:
  - request:
      path: /search?hidden-4
      headers: { x-api-key: "hash:h16", x-plan: gold }
      keys: { code tenant: "hash:h17" }
    expect: {}
"#,
        );
        assert_eq!(text, expected.unwrap().to_text());
    }

    #[test]
    fn keys_of_one_client_stay_apart() {
        let document = "overrides: { 2001:db8::1: { tier: a }, 2001:db8::2: { tier: b } }";
        let mut document = Document::parse(document).unwrap();
        HiddenNames::new(&|_| Some("1".to_owned())).hide(&mut document);
        let keys: Vec<&str> = document.overrides.keys().map(|key| &**key).collect();
        assert_eq!(keys, ["hash:1", "hidden-1"]);
    }
}
