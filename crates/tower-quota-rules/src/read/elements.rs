use core::hash::Hash;
use std::collections::HashSet;

use indexmap::IndexMap;
use serde::Deserialize;
use serde::de::value::{MapDeserializer, StrDeserializer};

use super::cursor::Cursor;
use super::error::ReadError;
use super::expressions;
use super::reading::Reading;
use super::tree::Kind;
use crate::document::{Document, Grants, OverrideRule};
use crate::problem::Problem;

/// The maximum number of readings of a large element, since every error causes another reading.
const MAX_READS_OF_LARGE: usize = 10;

const LARGE: u32 = 10_000;

impl Reading<'_> {
    pub(crate) fn document(&mut self) -> Document {
        for (first, second) in self.tree.duplicates() {
            let line = if self.problems.is_full() {
                0
            } else {
                self.tree.position(first).0
            };
            let text = self.tree.text(second);
            let message = format!("{text:?} is given twice, first in line {line}");
            self.leave_out(second, &message, "remove one");
        }
        let mut document = Document::default();
        if !matches!(self.tree.kind(0), Kind::Map | Kind::Null) {
            let message = "a document is a map of fields, and this is none";
            self.leave_out(0, message, "begin with a field, such as \"limits\"");
            return document;
        }
        // Bound the expressions before they compile, which takes more time and memory than reading
        // them.
        if let Some((message, help)) = expressions::excess(self.tree) {
            self.leave_out(0, &message, help);
            return document;
        }
        for (key, value) in self.tree.entries(0) {
            if self.left_out.contains(&key) {
                continue;
            }
            match self.tree.text(key) {
                "version" => document.version = self.field(value),
                "include" => document.include = self.field(value),
                "defaults" => document.defaults = self.field(value),
                "client_ip" => document.client_ip = self.field(value),
                "trusted_headers" => document.trusted_headers = self.list(value),
                "instances" => document.instances = self.field(value),
                "close_after" => document.close_after = self.field(value),
                "regions" => document.regions = self.map(value, Self::element),
                "former_regions" => document.former_regions = self.list(value),
                "limits" => document.limits = self.list(value),
                "tiers" => document.tiers = self.map(value, Self::element),
                "assign" => document.assign = self.list(value),
                "overrides" => {
                    let mut known = HashSet::new();
                    document.overrides = self.map(value, |reading, node| {
                        Some(shared(&mut known, reading.element(node)?))
                    });
                }
                "routes" => document.routes = self.list(value),
                "skip" => document.skip = self.list(value),
                "allow" => document.allow = self.list(value),
                "block" => document.block = self.list(value),
                "allow_empty" => document.allow_empty = self.field(value),
                "tests" => document.tests = self.list(value),
                "end" => document.end = self.end(value),
                unknown => {
                    // Ask the derived reader, which knows the names of the fields.
                    let field = core::iter::once((unknown, ()));
                    let fields = MapDeserializer::<_, ReadError>::new(field);
                    if let Err(error) = Document::deserialize(fields) {
                        self.found(error.at(key), key);
                    }
                }
            }
        }
        document
    }

    /// Reads the last line of a document. In another place, the line does not show that the document is complete.
    fn end(&mut self, value: u32) -> Option<bool> {
        let last = self.tree.entries(0).last();
        if last.is_some_and(|(_, last)| last != value) {
            let message =
                "this is not the last line, so a document that is cut behind it looks complete";
            self.leave_out(value, message, "move \"end\" to the end");
            return None;
        }
        self.field(value)
    }

    fn field<T: for<'de> Deserialize<'de> + Default>(&mut self, node: u32) -> T {
        self.element(node).unwrap_or_default()
    }

    fn list<T: for<'de> Deserialize<'de>>(&mut self, list: u32) -> Vec<T> {
        if !matches!(self.tree.kind(list), Kind::List | Kind::Null) {
            self.leave_out(list, "this is not a list", "write its elements in a list");
        }
        let elements = self.tree.elements(list);
        elements.filter_map(|node| self.element(node)).collect()
    }

    fn map<K, V>(
        &mut self,
        map: u32,
        mut read_value: impl FnMut(&mut Self, u32) -> Option<V>,
    ) -> IndexMap<K, V>
    where
        K: for<'de> Deserialize<'de> + Hash + Eq,
    {
        if !matches!(self.tree.kind(map), Kind::Map | Kind::Null) {
            self.leave_out(map, "this is not a map", "write names and values");
        }
        let mut read = IndexMap::with_capacity(self.tree.entries(map).count());
        for (key, value) in self.tree.entries(map) {
            if self.left_out.contains(&key) {
                continue;
            }
            let text: StrDeserializer<'_, ReadError> = StrDeserializer::new(self.tree.text(key));
            match K::deserialize(text) {
                Ok(name) => {
                    if let Some(element) = read_value(self, value) {
                        read.insert(name, element);
                    }
                }
                Err(error) => {
                    self.found(error, key);
                }
            }
        }
        read
    }

    /// Reads an element, and leaves out parts until the rest has no error.
    fn element<T: for<'de> Deserialize<'de>>(&mut self, node: u32) -> Option<T> {
        let is_large = self.tree.end(node) - node > LARGE;
        let most = if is_large {
            MAX_READS_OF_LARGE
        } else {
            usize::MAX
        };
        for _ in 0..most {
            let cursor = Cursor {
                tree: self.tree,
                left_out: &self.left_out,
                node,
            };
            match T::deserialize(cursor) {
                Ok(element) => return Some(element),
                Err(error) => {
                    if self.found(error, node) == node || self.problems.is_full() {
                        break;
                    }
                }
            }
        }
        self.left_out.insert(node);
        None
    }

    fn found(&mut self, error: ReadError, element: u32) -> u32 {
        let wrong = *error.at(element).0;
        let node = wrong.node.unwrap_or(element);
        // Report nothing if a part of the node was left out, because the error may come from the
        // gap.
        let in_it = node + 1..self.tree.end(node);
        if in_it.is_empty() || self.left_out.range(in_it).next().is_none() {
            self.report(node, wrong.message, wrong.help);
        }
        self.left_out.insert(node);
        node
    }

    fn leave_out(&mut self, node: u32, message: &str, help: &str) {
        self.report(node, message.into(), Some(help.into()));
        self.left_out.insert(node);
    }

    fn report(&mut self, node: u32, message: String, help: Option<String>) {
        if self.problems.is_full() {
            // Only count the problem, because finding its place takes time that grows with the
            // text.
            return self.problems.count(1);
        }
        let problem = Problem::error(self.tree.place(node), "");
        self.problems.push(Problem {
            message,
            help,
            ..problem.in_line(self.tree.position(node))
        });
    }
}

fn shared(known: &mut HashSet<Grants>, mut single: OverrideRule) -> OverrideRule {
    match known.get(&single.limits) {
        Some(grants) => single.limits = grants.clone(),
        None => {
            known.insert(single.limits.clone());
        }
    }
    single
}
