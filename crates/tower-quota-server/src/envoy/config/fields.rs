//! Reads the fields of maps, and records each problem.

use std::collections::BTreeMap;

use super::node::{Kind, Node, truth};
use super::problem::Problems;
use super::rule::OnStoreFailure;

/// A reader of a file, which records problems and goes on.
pub(super) struct Reader<'r> {
    pub(super) file: &'r str,
    problems: &'r mut Problems,
    /// The domain, and the keys and values of the descriptors around the place.
    pub(super) path: Vec<String>,
    /// The choice of limits without a choice of their own.
    pub(super) on_store_failure: OnStoreFailure,
}

/// The fields of a map, all of which are known.
#[derive(Default)]
pub(super) struct Fields<'n>(BTreeMap<&'n str, &'n Node<'n>>);

impl<'n> Fields<'n> {
    /// Returns the value of a field, unless the field is absent or null.
    pub(super) fn get(&self, name: &str) -> Option<&'n Node<'n>> {
        let value = *self.0.get(name)?;
        (!matches!(value.kind, Kind::Null)).then_some(value)
    }
}

impl<'r> Reader<'r> {
    pub(super) fn new(file: &'r str, problems: &'r mut Problems) -> Self {
        Self {
            file,
            problems,
            path: Vec::new(),
            on_store_failure: OnStoreFailure::Allow,
        }
    }

    pub(super) fn problem(&mut self, node: &Node<'_>, message: impl core::fmt::Display) {
        let place = node.place;
        if place.line > 0 || self.path.is_empty() {
            return self.problems.add(self.file, place, message);
        }
        let path = self.path.join(".");
        let message = format_args!("in {path:?}, {message}");
        self.problems.add(self.file, place, message);
    }

    pub(super) fn fields<'n>(&mut self, node: &'n Node<'_>, known: &[&str]) -> Fields<'n> {
        let mut fields = Fields::default();
        let entries = match &node.kind {
            Kind::Map(entries) => entries.as_slice(),
            Kind::Null => &[],
            _ => {
                let list = known.join(", ");
                self.problem(
                    node,
                    format_args!("a map belongs here: write fields such as {list}"),
                );
                &[]
            }
        };
        for (key, value) in entries {
            let (Kind::Plain(name) | Kind::Text(name)) = &key.kind else {
                self.problem(key, "this key is no text: write the name of a field");
                continue;
            };
            if !known.contains(&&**name) {
                let fix = suggestion(name, known);
                self.problem(key, format_args!("the key {name:?} is unknown here: {fix}"));
            } else if fields.0.insert(name, value).is_some() {
                self.problem(
                    key,
                    format_args!("the key {name:?} is given twice: remove one"),
                );
            }
        }
        fields
    }

    /// Returns the elements of a list. An absent list is empty.
    pub(super) fn list<'n>(&mut self, node: Option<&'n Node<'n>>) -> &'n [Node<'n>] {
        let Some(node) = node else { return &[] };
        if let Kind::List(elements) = &node.kind {
            return elements;
        }
        self.problem(node, "a list belongs here: begin each element with \"- \"");
        &[]
    }

    /// Returns a text. An absent text is empty.
    pub(super) fn text<'n>(&mut self, node: Option<&'n Node<'n>>) -> &'n str {
        let Some(node) = node else { return "" };
        if let Kind::Text(text) | Kind::Plain(text) = &node.kind {
            return text;
        }
        self.problem(node, "a text belongs here: write a single value");
        ""
    }

    pub(super) fn flag(&mut self, node: Option<&Node<'_>>) -> bool {
        let Some(node) = node else { return false };
        let flag = match &node.kind {
            Kind::Plain(text) => truth(text),
            _ => None,
        };
        if flag.is_none() {
            self.problem(node, "a switch belongs here: write true or false");
        }
        flag.unwrap_or_default()
    }

    pub(super) fn number(&mut self, node: &Node<'_>) -> Option<u32> {
        if let Kind::Plain(text) = &node.kind
            && let Ok(number) = text.parse()
        {
            return Some(number);
        }
        let shown = self.text(Some(node));
        let fix = "write an integer from 0 to 4294967295, without quotes";
        self.problem(
            node,
            format_args!("{shown:?} is not a number of requests: {fix}"),
        );
        None
    }

    /// Returns the value of a word.
    pub(super) fn word<T: Copy>(
        &mut self,
        node: &Node<'_>,
        what: &str,
        known: &[(&str, T)],
    ) -> Option<T> {
        let text = self.text(Some(node));
        for (word, value) in known {
            if word.eq_ignore_ascii_case(text) {
                return Some(*value);
            }
        }
        let words: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
        let fix = suggestion(text, &words);
        self.problem(node, format_args!("{text:?} is not {what}: {fix}"));
        None
    }
}

/// Names the nearest known word, or all words.
fn suggestion(unknown: &str, known: &[&str]) -> String {
    let unknown = unknown.to_ascii_lowercase();
    let most = 2 + unknown.len() / 4;
    let nearest = known
        .iter()
        // The time grows with the product of both lengths.
        .filter(|word| word.len().abs_diff(unknown.len()) <= most)
        .map(|word| (strsim::damerau_levenshtein(&unknown, word), *word))
        .min();
    match nearest {
        Some((distance, word)) if distance <= most => format!("write {word:?}, if that is meant"),
        _ => format!("write one of {}", known.join(", ")),
    }
}
