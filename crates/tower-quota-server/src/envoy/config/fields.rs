//! Reads the fields of maps, and records each problem.

use core::str::FromStr;

use super::problem::{Place, Problems};
use super::rule::OnStoreFailure;
use super::yaml::{Kind, Node};

/// A reader of a file, which records problems and goes on.
pub(super) struct Reader<'r> {
    pub(super) file: &'r str,
    pub(super) problems: &'r mut Problems,
    /// The choice of limits without a choice of their own.
    pub(super) on_store_failure: OnStoreFailure,
}

/// The fields of a map, all of which are known.
#[derive(Default)]
pub(super) struct Fields<'n>(Vec<(&'n str, &'n Node)>);

impl<'n> Fields<'n> {
    /// Returns the value of a field, unless the field is absent or null.
    pub(super) fn get(&self, name: &str) -> Option<&'n Node> {
        let field = self.0.iter().find(|(known, _)| *known == name);
        field
            .map(|(_, value)| *value)
            .filter(|value| !matches!(value.kind, Kind::Null))
    }
}

impl Reader<'_> {
    pub(super) fn problem(&mut self, place: Place, message: impl core::fmt::Display) {
        self.problems.add(self.file, place, message);
    }

    pub(super) fn fields<'n>(&mut self, node: &'n Node, known: &[&str]) -> Fields<'n> {
        let mut fields = Fields::default();
        match &node.kind {
            Kind::Map(entries) => {
                for (key, value) in entries {
                    self.field(key, value, known, &mut fields);
                }
            }
            Kind::Null => {}
            _ => {
                let list = known.join(", ");
                self.problem(
                    node.place,
                    format_args!("a map belongs here: write fields such as {list}"),
                );
            }
        }
        fields
    }

    fn field<'n>(
        &mut self,
        key: &'n Node,
        value: &'n Node,
        known: &[&str],
        fields: &mut Fields<'n>,
    ) {
        let (Kind::Plain(name) | Kind::Text(name)) = &key.kind else {
            self.problem(key.place, "this key is no text: write the name of a field");
            return;
        };
        if !known.contains(&name.as_str()) {
            let fix = suggestion(name, known);
            self.problem(
                key.place,
                format_args!("the key {name:?} is unknown here: {fix}"),
            );
        } else if fields.0.iter().any(|(field, _)| field == name) {
            self.problem(
                key.place,
                format_args!("the key {name:?} is given twice: remove one"),
            );
        } else {
            fields.0.push((name, value));
        }
    }

    /// Returns the elements of a list. An absent list is empty.
    pub(super) fn list<'n>(&mut self, node: Option<&'n Node>) -> &'n [Node] {
        let Some(node) = node else { return &[] };
        if let Kind::List(elements) = &node.kind {
            return elements;
        }
        self.problem(
            node.place,
            "a list belongs here: begin each element with \"- \"",
        );
        &[]
    }

    /// Returns a text. An absent text is empty.
    pub(super) fn text<'n>(&mut self, node: Option<&'n Node>) -> &'n str {
        let Some(node) = node else { return "" };
        if let Kind::Text(text) | Kind::Plain(text) = &node.kind {
            return text;
        }
        self.problem(node.place, "a text belongs here: write a single value");
        ""
    }

    pub(super) fn flag(&mut self, node: Option<&Node>) -> bool {
        let Some(node) = node else { return false };
        let text = match &node.kind {
            Kind::Plain(text) => text.to_ascii_lowercase(),
            _ => String::new(),
        };
        match text.as_str() {
            "true" | "yes" | "on" => true,
            "false" | "no" | "off" => false,
            _ => {
                self.problem(node.place, "a switch belongs here: write true or false");
                false
            }
        }
    }

    pub(super) fn number(&mut self, node: &Node) -> Option<u32> {
        let number = match &node.kind {
            Kind::Plain(text) => u32::from_str(text).ok(),
            _ => None,
        };
        if number.is_none() {
            let shown = self.text(Some(node));
            let fix = "write an integer from 0 to 4294967295, without quotes";
            self.problem(
                node.place,
                format_args!("{shown:?} is not a number of requests: {fix}"),
            );
        }
        number
    }

    /// Returns the value of a word.
    pub(super) fn word<T: Copy>(
        &mut self,
        node: &Node,
        what: &str,
        known: &[(&str, T)],
    ) -> Option<T> {
        let text = self.text(Some(node));
        let found = known
            .iter()
            .find(|(word, _)| word.eq_ignore_ascii_case(text));
        if found.is_none() {
            let words: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
            let fix = suggestion(text, &words);
            self.problem(node.place, format_args!("{text:?} is not {what}: {fix}"));
        }
        found.map(|(_, value)| *value)
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
        .filter(|(distance, _)| *distance <= most)
        .min();
    match nearest {
        Some((_, word)) => format!("write {word:?}, if that is meant"),
        None => format!("write one of {}", known.join(", ")),
    }
}
