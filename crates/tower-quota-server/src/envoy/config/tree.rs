//! The descriptors of a domain as a tree, and the search for the limit of a request.

use std::collections::HashMap;

use super::pattern::Pattern;
use super::rule::Rule;
use crate::messages::descriptors::rate_limit_descriptor::Entry;

/// The limits of a domain.
#[derive(Debug)]
pub(crate) struct Domain {
    /// The first file with the domain.
    pub(super) file: String,
    /// Whether refused calls count too, as envoyproxy/ratelimit counts them.
    pub(crate) is_compatible: bool,
    pub(super) root: Level,
}

/// The descriptors of a level, by key.
#[derive(Debug, Default)]
pub(super) struct Level(HashMap<Box<str>, Values>);

/// The descriptors of a key, by value.
#[derive(Debug, Default)]
struct Values {
    exact: HashMap<Box<str>, Descriptor>,
    /// In the order of the file, because the first match counts.
    patterns: Vec<(Pattern, Descriptor)>,
    any: Option<Descriptor>,
}

/// A descriptor of the file.
#[derive(Debug)]
pub(crate) struct Descriptor {
    /// The value or the pattern, or an empty text for any value.
    pub(crate) value: Box<str>,
    pub(super) rule: Option<Rule>,
    /// Whether all values of a pattern share a counter.
    pub(crate) shares: bool,
    /// Whether names of counts have the value of the request.
    pub(crate) names_value: bool,
    pub(super) next: Level,
}

impl Domain {
    /// Returns the limit of the last entry. Visits the descriptor of each entry.
    pub(crate) fn find<'e>(
        &self,
        entries: &'e [Entry],
        mut visit: impl FnMut(&'e Entry, &Descriptor),
    ) -> Option<&Rule> {
        let (mut level, mut rule) = (&self.root, None);
        for entry in entries {
            let descriptor = level.0.get(entry.key.as_str())?.find(&entry.value)?;
            visit(entry, descriptor);
            rule = descriptor.rule.as_ref();
            level = &descriptor.next;
        }
        rule
    }
}

impl Values {
    fn find(&self, value: &str) -> Option<&Descriptor> {
        if let Some(exact) = self.exact.get(value) {
            return Some(exact);
        }
        for (pattern, descriptor) in &self.patterns {
            if pattern.matches(value) {
                return Some(descriptor);
            }
        }
        self.any.as_ref()
    }
}

impl Level {
    /// Adds a descriptor. Returns whether the descriptor is new.
    pub(super) fn add(&mut self, key: &str, descriptor: Descriptor) -> bool {
        let values = self.0.entry(key.into()).or_default();
        let value = descriptor.value.clone();
        if value.is_empty() {
            return values.any.replace(descriptor).is_none();
        }
        let Some(pattern) = Pattern::new(&value) else {
            return values.exact.insert(value, descriptor).is_none();
        };
        let mut known = values.patterns.iter();
        let is_new = !known.any(|(_, known)| known.value == value);
        values.patterns.push((pattern, descriptor));
        is_new
    }
}
