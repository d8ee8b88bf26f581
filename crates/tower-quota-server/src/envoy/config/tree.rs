//! The descriptors of a domain as a tree, and the search for the limit of a request.

use std::collections::HashMap;

use super::pattern::Pattern;
use super::rule::Rule;
use crate::envoy::counter;
use crate::messages::descriptors::rate_limit_descriptor::Entry;

/// The limits of a domain.
#[derive(Debug, Default)]
pub(crate) struct Domain {
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
pub(super) struct Descriptor {
    pub(super) rule: Option<Rule>,
    /// Whether all values of a pattern share a counter.
    pub(super) shares: bool,
    pub(super) next: Level,
}

impl Domain {
    /// Returns the limit of the last entry, and appends its counter.
    pub(crate) fn find(&self, entries: &[Entry], counter: &mut Vec<u8>) -> Option<&Rule> {
        let (mut level, mut rule) = (&self.root, None);
        for Entry { key, value } in entries {
            let (descriptor, shared) = level.0.get(key.as_str())?.find(value)?;
            counter::push_entry(counter, key, value, shared);
            rule = descriptor.rule.as_ref();
            level = &descriptor.next;
        }
        rule
    }
}

impl Values {
    /// Returns the descriptor of a value, with the pattern if the values share a counter.
    fn find(&self, value: &str) -> Option<(&Descriptor, Option<&str>)> {
        if let Some(exact) = self.exact.get(value) {
            return Some((exact, None));
        }
        let mut patterns = self.patterns.iter();
        if let Some((pattern, found)) = patterns.find(|(pattern, _)| pattern.matches(value)) {
            return Some((found, found.shares.then(|| pattern.as_str())));
        }
        Some((self.any.as_ref()?, None))
    }
}

impl Level {
    /// Adds a descriptor. An empty value stands for any value. Returns whether the descriptor is new.
    pub(super) fn add(&mut self, key: &str, value: &str, descriptor: Descriptor) -> bool {
        let values = self.0.entry(key.into()).or_default();
        if value.is_empty() {
            return values.any.replace(descriptor).is_none();
        }
        let Some(pattern) = Pattern::new(value) else {
            return values.exact.insert(value.into(), descriptor).is_none();
        };
        let mut known = values.patterns.iter();
        let is_new = !known.any(|(known, _)| known.as_str() == value);
        values.patterns.push((pattern, descriptor));
        is_new
    }
}
