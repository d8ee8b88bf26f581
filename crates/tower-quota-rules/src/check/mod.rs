//! Checks the meaning of a document.
//!
//! Errors are contradictions, unknown names and limits that refuse every request. Warnings are
//! parts without an effect.

mod address;
mod assign;
mod code;
mod limits;
mod lists;
mod matches;
mod most_limits;
mod overrides;
mod samples;
mod tiers;

use std::collections::HashSet;

use indexmap::IndexMap;

use crate::code_parts::CodeParts;
use crate::document::{Document, LimitRule};
use crate::problem::{DocumentPlace, Problem, Problems, nearest};
use crate::text::NameText;

/// The names in a document, even of unreadable parts.
#[derive(Debug, Default)]
pub(crate) struct KnownNames {
    pub(crate) limits: HashSet<String>,
    pub(crate) tiers: HashSet<String>,
    /// Whether a part was unreadable. The reader then reports repeated names, since it sees all
    /// limits.
    pub(crate) is_partial: bool,
}

pub(crate) fn check(document: &Document, parts: &CodeParts, known: &KnownNames) -> Problems {
    let mut limits: IndexMap<&str, PlacedLimit<'_>> = IndexMap::new();
    let mut problems = Problems::default();
    for limit in all_limits(document) {
        let name = limit.rule.name.as_str();
        let first = limits.entry(name).or_insert(limit);
        // Leave repeated names of a partial document to the reader, which sees all limits.
        if !core::ptr::eq(first.rule, limit.rule) && !known.is_partial {
            let place = limit.place().field("name");
            problems.push(repeated_limit(place, name, &first.place()));
        }
    }
    let mut checker = Checker {
        document,
        parts,
        known,
        limits,
        problems,
    };
    checker.root();
    checker.code();
    checker.limits();
    checker.tiers();
    checker.assignments();
    checker.overrides();
    checker.lists();
    checker.matches();
    checker.samples();
    checker.problems
}

struct Checker<'d> {
    document: &'d Document,
    parts: &'d CodeParts,
    known: &'d KnownNames,
    /// The limits by name, the first of a repeated name.
    limits: IndexMap<&'d str, PlacedLimit<'d>>,
    problems: Problems,
}

/// A limit of a document, and where it is.
#[derive(Clone, Copy)]
pub(crate) struct PlacedLimit<'d> {
    pub(crate) rule: &'d LimitRule,
    position: usize,
    /// The position of the route, or `None` for a limit of every request.
    pub(crate) route: Option<usize>,
}

impl PlacedLimit<'_> {
    pub(crate) fn place(&self) -> DocumentPlace {
        match self.route {
            None => DocumentPlace::of("limits").index(self.position),
            Some(route) => DocumentPlace::of("routes")
                .index(route)
                .field("limits")
                .index(self.position),
        }
    }
}

pub(crate) fn all_limits(document: &Document) -> impl Iterator<Item = PlacedLimit<'_>> {
    let routes = document.routes.iter().enumerate();
    let lists = core::iter::once((None, &document.limits))
        .chain(routes.map(|(index, route)| (Some(index), &route.limits)));
    lists.flat_map(|(route, limits)| {
        let limits = limits.iter().enumerate();
        limits.map(move |(position, rule)| PlacedLimit {
            rule,
            position,
            route,
        })
    })
}

pub(crate) fn repeated_limit(place: DocumentPlace, name: &str, first: &DocumentPlace) -> Problem {
    let text = format_args!(
        "the limit {name:?} is there already, at {first}: give each a name of its own"
    );
    Problem::error(place, text)
}

impl<'d> Checker<'d> {
    fn error(&mut self, place: DocumentPlace, text: impl core::fmt::Display) {
        self.problems.push(Problem::error(place, text));
    }

    fn warning(&mut self, place: DocumentPlace, text: impl core::fmt::Display) {
        self.problems.push(Problem::warning(place, text));
    }

    fn unknown<'n>(
        &mut self,
        place: DocumentPlace,
        what: &str,
        name: &str,
        known: impl Iterator<Item = &'n str>,
    ) {
        if self.problems.is_full() {
            return self.problems.count(1);
        }
        let fix = match nearest(name, known) {
            Some(near) => format!("write {near:?}, if that is meant"),
            None => "define it, or remove its name here".into(),
        };
        self.error(place, format_args!("there is no {what} {name:?}: {fix}"));
    }

    /// Reports an unknown limit.
    fn known_limit(&mut self, place: impl FnOnce() -> DocumentPlace, name: &NameText) {
        let name = name.as_str();
        if !self.limits.contains_key(name) && !self.known.limits.contains(name) {
            let names: Vec<&'d str> = self.limits.keys().copied().collect();
            self.unknown(place(), "limit", name, names.into_iter());
        }
    }

    /// Reports an unknown tier. Returns whether the tier is known.
    fn is_tier(&mut self, place: impl FnOnce() -> DocumentPlace, name: &NameText) -> bool {
        let (tiers, name) = (&self.document.tiers, name.as_str());
        let is_known = tiers.contains_key(name) || self.known.tiers.contains(name);
        if !is_known {
            let names = tiers.keys().map(NameText::as_str);
            self.unknown(place(), "tier", name, names);
        }
        is_known
    }

    fn root(&mut self) {
        if let Some(version) = self.document.version
            && version != 1
        {
            self.error(
                DocumentPlace::of("version"),
                format_args!("version {version} of the format is not known: write 1"),
            );
        }
        if let Some(name) = &self.document.include {
            self.error(
                DocumentPlace::of("include"),
                format_args!("only a file can include {name:?}, and this text comes without its file: put it with `tower-quota put`, which merges files"),
            );
        }
        // A document with unreadable parts may have limits, which the reader reports.
        if self.limits.is_empty() && !self.document.allow_empty && !self.known.is_partial {
            self.error(
                DocumentPlace::default(),
                "the document has no limit, so that it admits every request: add a limit, or set \"allow_empty\" to true",
            );
        }
        if self.document.instances == Some(0) {
            self.error(
                DocumentPlace::of("instances"),
                "a quota cannot be divided among 0 instances: give at least 1",
            );
        }
        if self.document.close_after == Some(0) {
            self.error(
                DocumentPlace::of("close_after"),
                "no connection closes after 0 refusals: give at least 1, or leave it out",
            );
        }
        let document = self.document;
        self.regions(&document.regions, DocumentPlace::of("regions"));
        for (position, regions) in document.former_regions.iter().enumerate() {
            self.regions(regions, DocumentPlace::of("former_regions").index(position));
        }
        self.client_ip();
    }

    fn regions(&mut self, regions: &IndexMap<NameText, u32>, place: DocumentPlace) {
        let together: u64 = regions.values().map(|percent| u64::from(*percent)).sum();
        if regions.values().any(|percent| *percent == 0) || together > 99 {
            let text = format_args!(
                "the regions have {together} % of each quota: give each at least 1 %, and all at most 99 %, the rest is the pool"
            );
            self.error(place, text);
        }
    }
}
