//! The index of matches: which of many a request meets.

use core::fmt;
use core::net::IpAddr;
use std::collections::HashMap;
use std::sync::Arc;

use http::Method;
use tower_quota::RequestHead;
use tower_quota::key::ClientIp;
#[cfg(feature = "axum")]
use tower_quota::key::{self, KeyExtractor, ValueKey};
use tower_quota::when::Condition;

use super::globs::Globs;
use super::hosts::Hosts;
use super::nested::Nested;
use super::networks::Range;
use super::paths::Paths;
use crate::compile::conditions::{
    Context, Field, code_condition, conditions, header_source, method,
};
use crate::compile::key_source::KeySource;
use crate::document::Match;
use crate::problem::{Place, Problem, Problems};
use crate::text::KeyPattern;

/// Finds all matches that a request meets.
///
/// Each match is found by the values of one of its fields: by that whose values the fewest other matches have. The rest
/// of its fields is examined where it was found.
pub(crate) struct Matches<T> {
    entries: Vec<IndexedMatch<T>>,
    /// The conditions of all entries.
    conditions: Vec<Box<dyn Condition>>,
    /// The matches without a field to find them by.
    always: Vec<u32>,
    paths: Paths,
    #[cfg(feature = "axum")]
    route: ValueKey,
    #[cfg(feature = "axum")]
    routes: Texts,
    grpc_methods: Texts,
    grpc_services: Texts,
    default_key: Arc<KeySource>,
    keys: Globs,
    headers: Vec<(KeySource, Globs)>,
    hosts: Hosts,
    client_ip: ClientIp,
    networks: Nested<Range>,
    code: Vec<(Arc<dyn Condition>, Vec<u32>)>,
    methods: HashMap<Method, Vec<u32>>,
}

/// A condition of code, if the program gives it, and the matches that it finds.
type CodeMatches = (Option<Arc<dyn Condition>>, Vec<u32>);

/// Matches by a text.
type Texts = HashMap<Box<str>, Vec<u32>>;

/// A match.
struct IndexedMatch<T> {
    /// The value that it stands for.
    value: T,
    /// The conditions of the fields by which it was not found: the first, and the one after the last.
    rest: (u32, u32),
}

impl<T: Copy> Matches<T> {
    /// Makes the index of these matches: each with its path in the document, and the value that it stands for.
    pub(crate) fn new<'m>(
        matches: impl IntoIterator<Item = (&'m Match, Place, T)>,
        context: Context<'_>,
        problems: &mut Problems,
    ) -> Self {
        let matches: Vec<_> = matches.into_iter().collect();
        let shared = SharedMatches::count(matches.iter().map(|(matching, ..)| *matching));
        let (mut entries, mut all_conditions) = (Vec::with_capacity(matches.len()), Vec::new());
        let mut found = Found::default();
        for (matching, place, value) in &matches {
            let field = shared.rarest(matching);
            match conditions(matching, field, context, place) {
                Ok(rest) => {
                    let entry = number(entries.len());
                    let first = number(all_conditions.len());
                    all_conditions.extend(rest);
                    entries.push(IndexedMatch {
                        value: *value,
                        rest: (first, number(all_conditions.len())),
                    });
                    found.add(matching, field, entry, context, place, problems);
                }
                Err(problem) => problems.push(problem),
            }
        }
        found.into_index(entries, all_conditions, context, problems)
    }

    /// Visits the values of all matches that a request meets. One may be visited several times.
    pub(crate) fn find(&self, head: &RequestHead<'_>, mut visit: impl FnMut(T)) {
        let mut examine = |entry: u32| {
            let Some(entry) = self.entries.get(entry as usize) else {
                return;
            };
            let (first, end) = entry.rest;
            // Most have none: those of another are not read.
            if first == end
                || self
                    .conditions
                    .get(first as usize..end as usize)
                    .into_iter()
                    .flatten()
                    .all(|holds| holds(head))
            {
                visit(entry.value);
            }
        };
        self.always.iter().for_each(|entry| examine(*entry));
        if !self.paths.is_empty() {
            self.paths.find(head, &mut examine);
        }
        #[cfg(feature = "axum")]
        if !self.routes.is_empty() {
            // Through the extractor, so that no second place knows where routes are.
            let route = self.route.extract(head);
            visit_text(
                &self.routes,
                route
                    .as_ref()
                    .and_then(|route| core::str::from_utf8(route.as_bytes()).ok()),
                &mut examine,
            );
        }
        if !self.grpc_methods.is_empty() || !self.grpc_services.is_empty() {
            let call = head.uri().path().strip_prefix('/');
            visit_text(&self.grpc_methods, call, &mut examine);
            visit_text(
                &self.grpc_services,
                call.and_then(|call| Some(call.split_once('/')?.0)),
                &mut examine,
            );
        }
        if !self.keys.is_empty() {
            self.default_key
                .each_text(head, &mut |text| self.keys.find(text, &mut examine));
        }
        for (source, globs) in &self.headers {
            source.each_text(head, &mut |text| globs.find(text, &mut examine));
        }
        self.hosts.find(head, &mut examine);
        if !self.networks.is_empty()
            && let Some(address) = self.client_ip.address(head)
        {
            self.find_address(address, &mut examine);
        }
        for (holds, entries) in &self.code {
            if holds(head) {
                entries.iter().for_each(|entry| examine(*entry));
            }
        }
        let sent = head.method();
        // As in `when::method`, GET includes HEAD.
        let as_get = (*sent == Method::HEAD).then_some(&Method::GET);
        for entries in [Some(sent), as_get]
            .into_iter()
            .flatten()
            .filter_map(|method| self.methods.get(method))
        {
            entries.iter().for_each(|entry| examine(*entry));
        }
    }

    /// Returns whether a request meets any match.
    pub(crate) fn has(&self, head: &RequestHead<'_>) -> bool {
        let mut has = false;
        self.find(head, |_| has = true);
        has
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn find_address(&self, address: IpAddr, examine: &mut dyn FnMut(u32)) {
        self.networks.find_address(address, examine);
    }
}

fn visit_text(texts: &Texts, text: Option<&str>, examine: &mut dyn FnMut(u32)) {
    text.and_then(|text| texts.get(text))
        .into_iter()
        .flatten()
        .for_each(|entry| examine(*entry));
}

/// The number of matches that share a value of a field.
#[derive(Default)]
struct SharedMatches<'m> {
    counts: HashMap<(u8, &'m str, &'m str), usize>,
    total: usize,
}

impl<'m> SharedMatches<'m> {
    fn count(matches: impl Iterator<Item = &'m Match>) -> Self {
        let mut shared = Self::default();
        for matching in matches {
            shared.total += 1;
            for field in fields(matching) {
                each_value(matching, field, &mut |value, _| {
                    *shared.counts.entry(entry_of(field, value)).or_default() += 1;
                });
            }
        }
        shared
    }

    /// Returns the field by whose values the fewest matches are found.
    fn rarest(&self, matching: &'m Match) -> Option<Field<'m>> {
        let cost = |field: &Field<'m>| {
            let mut cost = 0;
            each_value(matching, *field, &mut |value, is_broad| {
                cost += self
                    .counts
                    .get(&entry_of(*field, value))
                    .copied()
                    .unwrap_or_default();
                cost += if is_broad { self.total } else { 0 };
            });
            cost
        };
        fields(matching).min_by_key(cost)
    }
}

const fn entry_of<'m>(field: Field<'m>, value: &'m str) -> (u8, &'m str, &'m str) {
    match field {
        Field::Path => (0, "", value),
        Field::Route => (1, "", value),
        Field::GrpcMethod => (2, "", value),
        Field::GrpcService => (3, "", value),
        Field::Key => (4, "", value),
        Field::Header(name) => (5, name, value),
        Field::Host => (6, "", value),
        Field::Network => (7, "", value),
        Field::Code => (8, "", value),
        Field::Method => (9, "", value),
    }
}

/// Returns the fields of a match, those first that are the quickest to find by.
fn fields(matching: &Match) -> impl Iterator<Item = Field<'_>> {
    let given = [
        (matching.path.is_some(), Field::Path),
        (matching.route.is_some(), Field::Route),
        (matching.grpc_method.is_some(), Field::GrpcMethod),
        (matching.grpc_service.is_some(), Field::GrpcService),
        (matching.key.is_some(), Field::Key),
        (matching.host.is_some(), Field::Host),
        (matching.network.is_some(), Field::Network),
    ];
    let last = [
        (matching.code.is_some(), Field::Code),
        (matching.method.is_some(), Field::Method),
    ];
    let headers = matching
        .header
        .0
        .keys()
        .map(|name| (true, Field::Header(name.as_str())));
    given
        .into_iter()
        .chain(headers)
        .chain(last)
        .filter_map(|(is_given, field)| is_given.then_some(field))
}

/// Visits the values of a field, and whether a value matches many requests.
fn each_value<'m>(matching: &'m Match, field: Field<'m>, visit: &mut dyn FnMut(&'m str, bool)) {
    let is_broad = |pattern: &KeyPattern| pattern.literal_prefix().0.is_empty();
    match field {
        Field::Path => matching
            .path
            .iter()
            .flat_map(|many| &many.0)
            .for_each(|path| match path {
                crate::document::PathMatch::Pattern(pattern) => {
                    visit(pattern.as_str(), pattern.as_str().starts_with("/{"))
                }
                crate::document::PathMatch::Regex(regex) => visit(regex.as_str(), true),
            }),
        Field::Route => matching
            .route
            .iter()
            .flat_map(|many| &many.0)
            .for_each(|route| visit(route, false)),
        Field::GrpcMethod => matching
            .grpc_method
            .iter()
            .flat_map(|many| &many.0)
            .for_each(|name| visit(name.as_str(), false)),
        Field::GrpcService => matching
            .grpc_service
            .iter()
            .flat_map(|many| &many.0)
            .for_each(|name| visit(name.as_str(), false)),
        Field::Key => matching
            .key
            .iter()
            .flat_map(|many| &many.0)
            .for_each(|key| visit(key.as_str(), is_broad(key))),
        Field::Header(wanted) => {
            let values = matching
                .header
                .0
                .iter()
                .filter(|(name, _)| name.as_str() == wanted);
            values
                .flat_map(|(_, many)| &many.0)
                .for_each(|value| visit(value.as_str(), is_broad(value)));
        }
        Field::Host => matching
            .host
            .iter()
            .flat_map(|many| &many.0)
            .for_each(|host| visit(host.as_str(), false)),
        Field::Network => matching
            .network
            .iter()
            .flat_map(|many| &many.0)
            .for_each(|network| visit(network.as_str(), false)),
        // Each costs a call of code, for every request.
        Field::Code => matching
            .code
            .iter()
            .flat_map(|many| &many.0)
            .for_each(|name| visit(name.as_str(), true)),
        Field::Method => matching
            .method
            .iter()
            .flat_map(|many| &many.0)
            .for_each(|name| visit(name.as_str(), true)),
    }
}

/// The matches by the field that finds them, while the index is made.
#[derive(Default)]
struct Found<'m> {
    always: Vec<u32>,
    paths: Vec<(&'m crate::document::PathMatch, u32)>,
    routes: Texts,
    grpc_methods: Texts,
    grpc_services: Texts,
    keys: Vec<(&'m KeyPattern, u32)>,
    headers: HashMap<&'m str, Vec<(&'m KeyPattern, u32)>>,
    hosts: Hosts,
    networks: Vec<(Range, u32)>,
    code: HashMap<&'m str, CodeMatches>,
    methods: HashMap<Method, Vec<u32>>,
}

impl<'m> Found<'m> {
    /// Adds a match under each value of a field.
    fn add(
        &mut self,
        matching: &'m Match,
        field: Option<Field<'m>>,
        entry: u32,
        context: Context<'_>,
        place: &Place,
        problems: &mut Problems,
    ) {
        let Some(field) = field else {
            return self.always.push(entry);
        };
        match field {
            Field::Path => self.paths.extend(
                matching
                    .path
                    .iter()
                    .flat_map(|many| &many.0)
                    .map(|path| (path, entry)),
            ),
            Field::Key => self.keys.extend(
                matching
                    .key
                    .iter()
                    .flat_map(|many| &many.0)
                    .map(|key| (key, entry)),
            ),
            Field::Header(name) => {
                let patterns = matching
                    .header
                    .0
                    .iter()
                    .filter(|(other, _)| other.as_str() == name);
                let patterns = patterns
                    .flat_map(|(_, many)| &many.0)
                    .map(|pattern| (pattern, entry));
                self.headers.entry(name).or_default().extend(patterns);
            }
            Field::Code => {
                for name in matching.code.iter().flat_map(|many| &many.0) {
                    let (given, entries) = self.code.entry(name.as_str()).or_default();
                    if given.is_none() {
                        match code_condition(name.as_str(), context, place) {
                            Ok(condition) => *given = Some(condition),
                            Err(problem) => problems.push(problem),
                        }
                    }
                    entries.push(entry);
                }
            }
            Field::Route
            | Field::GrpcMethod
            | Field::GrpcService
            | Field::Host
            | Field::Network
            | Field::Method => {
                each_value(matching, field, &mut |value, _| {
                    self.add_text(field, value, entry)
                });
            }
        }
    }

    fn add_text(&mut self, field: Field<'_>, value: &str, entry: u32) {
        match field {
            Field::Route => self.routes.entry(value.into()).or_default().push(entry),
            Field::GrpcMethod => self
                .grpc_methods
                .entry(value.into())
                .or_default()
                .push(entry),
            Field::GrpcService => self
                .grpc_services
                .entry(value.into())
                .or_default()
                .push(entry),
            Field::Host => self.hosts.add(value, entry),
            Field::Network => self
                .networks
                .extend(Range::of(value).map(|range| (range, entry))),
            Field::Method => {
                if let Some(method) = method(value) {
                    self.methods.entry(method).or_default().push(entry);
                }
            }
            Field::Path | Field::Key | Field::Header(_) | Field::Code => {}
        }
    }

    fn into_index<T>(
        self,
        entries: Vec<IndexedMatch<T>>,
        conditions: Vec<Box<dyn Condition>>,
        context: Context<'_>,
        problems: &mut Problems,
    ) -> Matches<T> {
        let paths = Paths::new(self.paths).unwrap_or_else(|error| {
            problems.push(Problem::error(
                Place::default(),
                format_args!(
                    "the expressions on paths are too large together, {error}: use patterns"
                ),
            ));
            Paths::default()
        });
        let headers = self
            .headers
            .into_iter()
            .filter_map(|(name, patterns)| Some((header_source(name).ok()?, Globs::new(patterns))));
        Matches {
            entries,
            conditions,
            always: self.always,
            paths,
            #[cfg(feature = "axum")]
            route: key::route(),
            #[cfg(feature = "axum")]
            routes: self.routes,
            grpc_methods: self.grpc_methods,
            grpc_services: self.grpc_services,
            default_key: Arc::clone(context.default_key),
            keys: Globs::new(self.keys),
            headers: headers.collect(),
            hosts: self.hosts,
            client_ip: context.client_ip.clone(),
            networks: Nested::new(self.networks),
            code: self
                .code
                .into_values()
                .filter_map(|(given, entries)| Some((given?, entries)))
                .collect(),
            methods: self.methods,
        }
    }
}

fn number(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}

impl<T> fmt::Debug for Matches<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Matches({})", self.entries.len())
    }
}
