use core::fmt::Display;
use std::io;
use std::path::Path;

use indexmap::map::Entry;

use super::loosened::Loosened;
use crate::document::{Document, KeyRule, Match};
use crate::problem::{DocumentPlace, Problem, Problems};

pub(super) struct Merge<'d> {
    /// The path of the included document, as it is written.
    name: &'d str,
    pub(super) problems: Problems,
}

impl<'d> Merge<'d> {
    pub(super) fn new(name: &'d str) -> Self {
        Self {
            name,
            problems: Problems::default(),
        }
    }

    fn error(&mut self, place: DocumentPlace, text: impl Display) {
        self.problems.push(Problem::error(place, text));
    }

    pub(super) fn included(
        &mut self,
        read: impl FnOnce(&Path) -> io::Result<String>,
        must_end: bool,
        max_bytes: usize,
    ) -> Option<Document> {
        let path = Path::new(self.name);
        let text = match path.is_absolute() {
            true => Err("its path is not relative to the folder of this document".into()),
            false => read(path).map_err(|error| error.to_string()),
        };
        let document = text.and_then(|text| {
            if text.len() > max_bytes {
                return Err(format!("it has more than {max_bytes} bytes"));
            }
            parse(&text, must_end)
        });
        match document {
            Ok(document) => Some(document),
            Err(reason) => {
                let message = format!("{:?} cannot be included, since {reason}", self.name);
                self.problems.push(Problem {
                    message,
                    help: Some("correct it, or remove \"include\"".into()),
                    ..Problem::error(DocumentPlace::of("include"), "")
                });
                None
            }
        }
    }

    /// Returns the included document with the parts of another document after its own.
    pub(super) fn of(&mut self, mut merged: Document, mut own: Document) -> Document {
        for loosened in Loosened::all(&merged, &own) {
            self.error(
                loosened.place,
                format_args!("{}: {}", loosened.text, loosened.fix),
            );
        }
        self.defaults(&mut merged, &mut own);
        self.one_of("version", &mut merged.version, own.version);
        self.one_of("client_ip", &mut merged.client_ip, own.client_ip);
        self.one_of("instances", &mut merged.instances, own.instances);
        self.one_of("regions", &mut merged.regions, own.regions);
        let former = own.former_regions;
        self.one_of("former_regions", &mut merged.former_regions, former);
        merged.limits.append(&mut own.limits);
        merged.routes.append(&mut own.routes);
        merged.assign.append(&mut own.assign);
        merged.block.append(&mut own.block);
        merged.trusted_headers.append(&mut own.trusted_headers);
        for (name, tier) in own.tiers {
            match merged.tiers.entry(name) {
                Entry::Occupied(mut known) => {
                    let limits = &mut known.get_mut().limits;
                    let both = limits.iter().chain(&tier.limits);
                    *limits = both.map(|(name, grant)| (name.clone(), *grant)).collect();
                }
                Entry::Vacant(entry) => {
                    entry.insert(tier);
                }
            }
        }
        merged.overrides.extend(own.overrides);
        merged.allow_empty |= own.allow_empty;
        // The tests of the included document list its limits only.
        merged.tests = own.tests;
        merged.end = own.end;
        merged
    }

    /// Takes a field from the document that has it.
    fn one_of<T: Default + PartialEq>(&mut self, field: &str, merged: &mut T, own: T) {
        let absent = T::default();
        if own == absent || own == *merged {
            return;
        }
        if *merged == absent {
            *merged = own;
            return;
        }
        let text = format_args!("{:?} has another value: remove one", self.name);
        let problem = Problem::error(DocumentPlace::of(field), text);
        self.problems.push(problem);
    }

    /// Writes the defaults of each document into its limits, where the other document would choose others.
    fn defaults(&mut self, merged: &mut Document, own: &mut Document) {
        if own.defaults.key.is_some() && own.defaults.key() != merged.defaults.key() {
            let is_fixed = merged.defaults.key.is_some() || compares_keys(merged);
            if is_fixed && compares_keys(own) {
                let name = self.name;
                let text = format_args!(
                    "tiers, overrides and patterns mean the key of {name:?}, which is another one: remove this key"
                );
                self.error(DocumentPlace::of("defaults").field("key"), text);
            }
            let written = if is_fixed { &mut *own } else { &mut *merged };
            let key: KeyRule = written.defaults.key().clone();
            for rule in written.all_limits_mut() {
                rule.key.get_or_insert_with(|| key.clone());
            }
            if !is_fixed {
                merged.defaults.key = own.defaults.key.take();
            }
        }
        let (missing, failure) = (own.defaults.missing, own.defaults.on_store_failure);
        for rule in own.all_limits_mut() {
            rule.missing = rule.missing.or(missing);
            rule.on_store_failure = rule.on_store_failure.or(failure);
        }
    }
}

fn parse(text: &str, must_end: bool) -> Result<Document, String> {
    let document = Document::parse(text).map_err(|problems| problems.to_string())?;
    if document.include.is_some() {
        return Err("it includes another document".into());
    }
    if must_end && document.end != Some(true) {
        return Err("it ends before its last line `end: true`, which this document has".into());
    }
    Ok(document)
}

/// Returns whether a part of a document means the key of its `defaults`.
fn compares_keys(document: &Document) -> bool {
    let has_keys = |matching: &Match| matching.key.is_some();
    let assigns_by_key = document.assign.iter().any(|rule| rule.key.is_some());
    assigns_by_key
        || !document.overrides.is_empty()
        || document.all_matches().into_iter().any(has_keys)
}
