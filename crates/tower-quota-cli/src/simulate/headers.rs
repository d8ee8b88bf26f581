//! Counts the requests without the headers by which limits count. A log may have a header in a
//! field that nobody has named.

use std::collections::BTreeMap;

use http::HeaderMap;
use tower_quota_rules::{Document, KeyRule, KeyText, MissingRule};

/// The headers by which limits count.
#[derive(Debug, Default)]
pub(super) struct CountedHeaders(BTreeMap<String, CountedHeader>);

#[derive(Debug, Default)]
struct CountedHeader {
    limits: Vec<String>,
    /// The limits that skip a request without the header.
    skipping: Vec<String>,
    absent: u64,
}

impl CountedHeaders {
    pub(super) fn of(document: &Document) -> Self {
        let (defaults, mut headers) = (&document.defaults, Self::default());
        for limit in document.all_limits() {
            let missing = limit.missing.or(defaults.missing);
            if let Some(key) = limit.key.as_ref().or(defaults.key.as_ref()) {
                let skips = missing == Some(MissingRule::Skip) && matches!(key, KeyRule::One(_));
                headers.add(key, limit.name.as_str(), skips);
            }
        }
        headers
    }

    fn add(&mut self, key: &KeyRule, limit: &str, skips: bool) {
        match key {
            KeyRule::First(keys) | KeyRule::All { all: keys } => {
                keys.iter().for_each(|key| self.add(key, limit, skips));
            }
            KeyRule::One(KeyText::Value(value)) => {
                if let Some(name) = value.to_string().strip_prefix("header ") {
                    let header = self.0.entry(name.to_owned()).or_default();
                    header.limits.push(limit.to_owned());
                    header.skipping.extend(skips.then(|| limit.to_owned()));
                }
            }
            KeyRule::One(_) => {}
        }
    }

    pub(super) fn count(&mut self, headers: &HeaderMap) {
        for (name, header) in &mut self.0 {
            header.absent += u64::from(!headers.contains_key(name));
        }
    }

    pub(super) fn notes(&self, requests: u64) -> Vec<String> {
        let mut notes = Vec::new();
        for (name, header) in &self.0 {
            let (absent, limits) = (header.absent, header.limits.join(", "));
            if absent == requests {
                notes.push(format!(
                    "no line has the header {name}, by which limits count ({limits}): name its field by --header {name}=FIELD"
                ));
            }
            if absent > 0 && !header.skipping.is_empty() {
                let limits = header.skipping.join(", ");
                notes.push(format!(
                    "{absent} requests have no header {name}, so limits with `missing: skip` do not count them ({limits})"
                ));
            }
        }
        notes
    }
}
