use core::fmt;
use std::collections::{HashMap, HashSet};

use indexmap::IndexMap;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::document::{Document, Sample};

/// A difference between two documents. Its text is a line with `+` added, `-` removed or `~`
/// changed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Difference {
    /// The place, such as `limits[minute].quota`.
    pub path: String,
    /// The kind of the difference.
    pub change: ChangeKind,
    /// The value before, absent if it was added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// The value after, absent if it was removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// A kind of difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ChangeKind {
    /// The value is new.
    Added,
    /// The value was removed.
    Removed,
    /// The value was changed.
    Changed,
    /// The elements have another order, and the first match wins.
    Reordered,
}

impl Document {
    /// Returns the changes of meaning from this document to another. The format and the order of
    /// limits do not matter. Changed tests are one difference, since they change no decision.
    ///
    /// ```
    /// use tower_quota_rules::Rules;
    ///
    /// let rules = |quota| Rules::parse(&format!("limits: [{{ name: minute, quota: {quota} }}]"));
    /// let (old, new) = (rules("100/minute")?, rules("200/minute")?);
    /// let differences = old.document().differences(new.document());
    /// assert_eq!(differences[0].to_string(), "~ limits[minute].quota: 100/minute -> 200/minute");
    /// # Ok::<(), tower_quota_rules::Problems>(())
    /// ```
    #[must_use]
    pub fn differences(&self, new: &Self) -> Vec<Difference> {
        // Convert only changed overrides to values, since there may be a million.
        let changed = |document: &Self, other: &Self| {
            let mut changed = document.clone();
            changed.tests.clear();
            changed
                .overrides
                .retain(|key, rule| other.overrides.get(key) != Some(&*rule));
            changed.to_value()
        };
        let mut found = Vec::new();
        compare("", &changed(self, new), &changed(new, self), &mut found);
        found.extend(tests(&self.tests, &new.tests));
        found
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: &Option<Value>| value.as_ref().map_or_else(String::new, short);
        let (path, before, after) = (&self.path, shown(&self.before), shown(&self.after));
        match self.change {
            ChangeKind::Added => write!(f, "+ {path}: {after}"),
            ChangeKind::Removed => write!(f, "- {path}: {before}"),
            ChangeKind::Changed => write!(f, "~ {path}: {before} -> {after}"),
            ChangeKind::Reordered => write!(f, "~ {path}: the order is {after}, was {before}"),
        }
    }
}

fn short(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(list) => format!(
            "[{}]",
            list.iter().map(short).collect::<Vec<_>>().join(", ")
        ),
        Value::Object(map) => {
            let field = |(name, value): (&String, &Value)| format!("{name}: {}", short(value));
            format!(
                "{{ {} }}",
                map.iter().map(field).collect::<Vec<_>>().join(", ")
            )
        }
        other => other.to_string(),
    }
}

fn compare(path: &str, old: &Value, new: &Value, found: &mut Vec<Difference>) {
    match (old, new) {
        _ if old == new => {}
        (Value::Object(old), Value::Object(new)) => fields(path, old, new, found),
        (Value::Array(old), Value::Array(new)) => lists(path, old, new, found),
        _ => found.push(difference(path, Some(old), Some(new))),
    }
}

fn fields(
    path: &str,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    found: &mut Vec<Difference>,
) {
    let added = new.keys().filter(|name| !old.contains_key(*name));
    for name in old.keys().chain(added) {
        let place = match path {
            "" => name.clone(),
            path => format!("{path}.{name}"),
        };
        let (before, after) = (old.get(name), new.get(name));
        match (before, after) {
            (Some(before), Some(after)) => compare(&place, before, after, found),
            // A section at the top differs by its elements.
            (Some(section), None) | (None, Some(section))
                if path.is_empty() && (section.is_array() || section.is_object()) =>
            {
                let empty = if section.is_array() {
                    json!([])
                } else {
                    json!({})
                };
                compare(
                    &place,
                    before.unwrap_or(&empty),
                    after.unwrap_or(&empty),
                    found,
                );
            }
            _ => found.push(difference(&place, before, after)),
        }
    }
}

fn lists(path: &str, old: &[Value], new: &[Value], found: &mut Vec<Difference>) {
    let (old, new) = (labelled(old), labelled(new));
    let added = new.keys().filter(|label| !old.contains_key(*label));
    for label in old.keys().chain(added) {
        let place = format!("{path}[{label}]");
        match (old.get(label), new.get(label)) {
            (Some(before), Some(after)) => compare(&place, before, after, found),
            (before, after) => {
                found.push(difference(&place, before.copied(), after.copied()));
            }
        }
    }
    let shared = |one: &Labelled<'_>, other: &Labelled<'_>| -> Value {
        let labels = one.keys().filter(|label| other.contains_key(*label));
        labels.cloned().collect()
    };
    let (before, after) = (shared(&old, &new), shared(&new, &old));
    // Ignore the order of limits, which has no effect. In other lists the first match may win.
    if before != after && !path.ends_with("limits") {
        found.push(Difference {
            change: ChangeKind::Reordered,
            ..difference(path, Some(&before), Some(&after))
        });
    }
}

/// Counts changed tests, which would hide the changes of rules in a list.
fn tests(old: &[Sample], new: &[Sample]) -> Option<Difference> {
    if old == new {
        return None;
    }
    // Texts, numbers and names always serialize.
    let text = |sample: &Sample| serde_json::to_string(sample).unwrap_or_default();
    let known: HashSet<String> = old.iter().map(text).collect();
    let added = new.iter().filter(|sample| !known.contains(&text(sample)));
    let before = (!old.is_empty()).then(|| json!(format!("{} tests", old.len())));
    let after = format!("{} tests, {} of them new", new.len(), added.count());
    let after = (!new.is_empty()).then(|| json!(after));
    Some(difference("tests", before.as_ref(), after.as_ref()))
}

fn difference(path: &str, before: Option<&Value>, after: Option<&Value>) -> Difference {
    Difference {
        path: path.to_owned(),
        change: match (before, after) {
            (None, _) => ChangeKind::Added,
            (_, None) => ChangeKind::Removed,
            _ => ChangeKind::Changed,
        },
        before: before.cloned(),
        after: after.cloned(),
    }
}

type Labelled<'a> = IndexMap<String, &'a Value>;

/// Labels the elements of a list for people, by a limit's name, a route's match or an assignment's
/// key or condition.
fn labelled(list: &[Value]) -> Labelled<'_> {
    let mut all = Labelled::with_capacity(list.len());
    let mut same = HashMap::<String, u32>::new();
    for element in list {
        let name = element
            .get("name")
            .and_then(Value::as_str)
            .map(str::to_owned);
        let by = ["match", "request", "key", "when"]
            .iter()
            .find_map(|field| element.get(field))
            .map(short);
        let label = name.or(by).unwrap_or_else(|| short(element));
        let number = same.entry(label.clone()).or_default();
        *number += 1;
        all.insert(
            if *number > 1 {
                format!("{label} #{number}")
            } else {
                label
            },
            element,
        );
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rules;

    fn shown(old: &str, new: &str) -> Vec<String> {
        let document = |text| Rules::parse(text).unwrap().document().clone();
        document(old)
            .differences(&document(new))
            .iter()
            .map(Difference::to_string)
            .collect()
    }

    #[test]
    fn changes_are_named_by_limit_tier_route() {
        let old = "
defaults: { key: header x-api-key }
limits: [{ name: minute, quota: 100/minute }, { name: day, quota: 5/day }]
tiers: { free: {}, pro: { limits: { minute: 1000/minute } } }
assign: [{ key: 'a*', tier: free }, { key: 'b*', tier: pro }]
routes: [{ match: { path: /login }, limits: [{ name: login, quota: 5/minute }] }]
";
        let new = "
defaults: { key: header x-api-key }
limits: [{ name: day, quota: 5/day }, { name: minute, quota: 200/minute, shadow: true }]
tiers: { free: {}, pro: { limits: { minute: 2000/minute } }, max: {} }
assign: [{ key: 'b*', tier: pro }, { key: 'a*', tier: free }]
routes: [{ match: { path: /login }, limits: [{ name: login, quota: 6/minute }] }, { match: { path: /x }, limits: [{ name: x, quota: 1/day }] }]
block: [{ key: bad }]
";
        assert!(shown(old, old).is_empty());
        assert_eq!(
            shown(old, new),
            [
                "~ limits[minute].quota: 100/minute -> 200/minute",
                "+ limits[minute].shadow: true",
                "~ tiers.pro.limits.minute: 1000/minute -> 2000/minute",
                "+ tiers.max: {  }",
                "~ assign: the order is [b*, a*], was [a*, b*]",
                "~ routes[{ path: /login }].limits[login].quota: 5/minute -> 6/minute",
                "+ routes[{ path: /x }]: { match: { path: /x }, limits: [{ name: x, quota: 1/day }] }",
                "+ block[bad]: { key: bad }",
            ]
        );
    }
    #[test]
    fn changed_tests_are_one_difference() {
        let with = |samples: &[&str]| {
            let tests: String = samples
                .iter()
                .map(|path| format!("  - {{ request: {{ path: {path} }}, expect: {{}} }}\n"))
                .collect();
            format!("limits: [{{ name: minute, quota: 9/minute }}]\ntests:\n{tests}")
        };
        let (none, some) = (
            "limits: [{ name: minute, quota: 9/minute }]",
            with(&["/a", "/b"]),
        );
        assert_eq!(shown(none, &some), ["+ tests: 2 tests, 2 of them new"]);
        assert_eq!(shown(&some, none), ["- tests: 2 tests"]);
        let more = with(&["/c", "/b", "/d"]);
        assert_eq!(
            shown(&some, &more),
            ["~ tests: 2 tests -> 3 tests, 2 of them new"]
        );
    }
}
