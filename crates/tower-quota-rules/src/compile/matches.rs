//! The index of matches: which of many a request meets.
//!
//! Each match is listed under a feature that a request must have to meet it: the text of a segment of its path, a
//! host, the beginning of a key, a network. The features of a request lead to candidates, and the conditions of a
//! candidate decide. A match with several features is listed under the one that the fewest matches share.

use core::fmt;
use core::hash::BuildHasher;
use core::net::IpAddr;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use foldhash::quality::RandomState;
use ipnet::IpNet;
use tower_quota::key::{self, ClientIp, KeyExtractor};
use tower_quota::when::Condition;
use tower_quota::{RequestHead, when};

use super::conditions::{Context, condition, header_source};
use super::key_source::KeySource;
use super::literals::{segments_of_pattern, segments_of_regex};
use crate::document::{HeaderMatches, Many, Match, PathMatch};
use crate::problem::{Place, Problem, Problems};
use crate::text::KeyPattern;

/// Finds all matches that a request meets.
pub(crate) struct Matches<T> {
    entries: Vec<Entry<T>>,
    /// The entries without a feature, which every request is a candidate for.
    always: Vec<u32>,
    /// The entries under the hash of their feature. Conditions decide, so that a collision does no harm.
    listed: HashMap<u64, Vec<u32>>,
    features: Features,
    client_ip: ClientIp,
}

struct Entry<T> {
    value: T,
    holds: Box<dyn Condition>,
}

/// A property of a request.
#[derive(Hash)]
enum Feature<'a> {
    /// A segment of the path, by its position.
    Segment(usize, &'a [u8]),
    Route(&'a [u8]),
    /// A host, or its end from a dot on.
    Host(&'a [u8]),
    /// The beginning of a key, by the position of its source.
    Text(usize, &'a [u8]),
    Network(IpNet),
}

/// The features that matches use.
#[derive(Default)]
struct Features {
    hasher: RandomState,
    /// The default key and headers, with the lengths of the beginnings that are listed.
    sources: Vec<(Source, BTreeSet<usize>)>,
    lengths_of_networks: BTreeSet<u8>,
    has_hosts: bool,
    has_routes: bool,
}

struct Source {
    /// The name of the header; `None` for the default key.
    header: Option<Box<str>>,
    key: Arc<KeySource>,
}

/// A match by one of its fields.
struct Split {
    /// A match for each value of the field, with the hashes of its features.
    values: Vec<(Match, Vec<u64>)>,
    /// The other fields.
    rest: Match,
}

impl<T: Copy> Matches<T> {
    /// Makes the index of these matches: each with its path in the document, and the value that it stands for.
    pub(crate) fn new<'m>(
        matches: impl IntoIterator<Item = (&'m Match, Place, T)>,
        context: Context<'_>,
        problems: &mut Problems,
    ) -> Self {
        let mut features = Features::default();
        let mut shared: HashMap<u64, usize> = HashMap::new();
        let mut all = Vec::new();
        for (matching, place, value) in matches {
            let splits = splits(matching, context, &mut features);
            let values = splits.iter().flat_map(|split| &split.values);
            for feature in values.flat_map(|(_, features)| features) {
                *shared.entry(*feature).or_default() += 1;
            }
            all.push((matching, place, value, splits));
        }
        let mut index = Self {
            entries: Vec::with_capacity(all.len()),
            always: Vec::new(),
            listed: HashMap::new(),
            features,
            client_ip: context.client_ip.clone(),
        };
        let rarest = |features: &[u64]| {
            features
                .iter()
                .map(|feature| (shared[feature], *feature))
                .min()
        };
        for (matching, place, value, splits) in all {
            // A field with a value that has no feature finds nothing.
            let sharing = |split: &Split| {
                let sharing = split
                    .values
                    .iter()
                    .map(|(_, features)| Some(rarest(features)?.0));
                sharing.sum::<Option<usize>>().unwrap_or(usize::MAX)
            };
            let split = splits.into_iter().min_by_key(sharing);
            let added = match split.filter(|split| sharing(split) < usize::MAX) {
                Some(split) => index.add_split(split, value, context, &place, &rarest),
                None => condition(matching, context, &place).map(|holds| {
                    let entry = index.add(value, holds);
                    index.always.push(entry);
                }),
            };
            if let Err(problem) = added {
                problems.push(problem);
            }
        }
        index
    }

    fn add_split(
        &mut self,
        split: Split,
        value: T,
        context: Context<'_>,
        place: &Place,
        rarest: &dyn Fn(&[u64]) -> Option<(usize, u64)>,
    ) -> Result<(), Problem> {
        let rest = match split.rest.is_empty() {
            true => None,
            false => Some(Arc::new(condition(&split.rest, context, place)?)),
        };
        for (single, features) in &split.values {
            let single = condition(single, context, place)?;
            let holds = match rest.clone() {
                None => single,
                Some(rest) => Box::new(move |head: &RequestHead<'_>| single(head) && rest(head)),
            };
            let entry = self.add(value, holds);
            if let Some((_, feature)) = rarest(features) {
                self.listed.entry(feature).or_default().push(entry);
            }
        }
        Ok(())
    }

    fn add(&mut self, value: T, holds: Box<dyn Condition>) -> u32 {
        self.entries.push(Entry { value, holds });
        u32::try_from(self.entries.len() - 1).unwrap_or(u32::MAX)
    }

    /// Visits the values of all matches that a request meets. One may be visited several times.
    pub(crate) fn find(&self, head: &RequestHead<'_>, mut visit: impl FnMut(T)) {
        let mut examine = |entries: &[u32]| {
            for entry in entries {
                if let Some(entry) = self.entries.get(*entry as usize)
                    && (entry.holds)(head)
                {
                    visit(entry.value);
                }
            }
        };
        examine(&self.always);
        if !self.listed.is_empty() {
            self.features
                .each_of(head, &self.client_ip, &mut |feature| {
                    if let Some(entries) = self.listed.get(&feature) {
                        examine(entries);
                    }
                });
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
}

impl Features {
    fn hash(&self, feature: &Feature<'_>) -> u64 {
        self.hasher.hash_one(feature)
    }

    /// Visits the hashes of a request's features: at least of those without which no condition holds.
    fn each_of(&self, head: &RequestHead<'_>, client_ip: &ClientIp, visit: &mut dyn FnMut(u64)) {
        let in_doubt = head.holds_in_doubt();
        let mut each_segment = |path: &str| {
            let segments = path.split('/').skip(1).enumerate();
            segments
                .for_each(|(at, text)| visit(self.hash(&Feature::Segment(at, text.as_bytes()))));
        };
        // Calls of gRPC are compared with the present path alone.
        let present = head.uri().path();
        each_segment(present);
        head.path_matches(|path| {
            if path != present {
                each_segment(path);
            }
            !in_doubt
        });
        #[cfg(feature = "axum")]
        if self.has_routes
            && let Some(route) = key::route().extract(head)
        {
            visit(self.hash(&Feature::Route(route.as_bytes())));
        }
        if self.has_hosts {
            head.host_matches(|host| {
                let dots = host.iter().enumerate().filter(|(_, byte)| **byte == b'.');
                let ends = core::iter::once(0).chain(dots.map(|(at, _)| at));
                ends.for_each(|at| visit(self.hash(&Feature::Host(&host[at..]))));
                !in_doubt
            });
        }
        for (at, (source, lengths)) in self.sources.iter().enumerate() {
            source.key.each_text(head, &mut |text| {
                for length in lengths.range(..=text.len()) {
                    visit(self.hash(&Feature::Text(at, &text[..*length])));
                }
            });
        }
        if !self.lengths_of_networks.is_empty()
            && let Some(address) = client_ip.address(head)
        {
            let lengths = self.lengths_of_networks.iter();
            for network in lengths.filter_map(|length| IpNet::new(address, *length).ok()) {
                visit(self.hash(&Feature::Network(network.trunc())));
            }
        }
    }

    /// Returns the hashes of the features that a match with one value needs.
    fn of(&mut self, single: &Match, context: Context<'_>) -> Vec<u64> {
        let mut hashes = Vec::new();
        let segments = |hashes: &mut Vec<u64>, all: &[Option<String>]| {
            let literals = all.iter().enumerate();
            let literals = literals.filter_map(|(at, text)| Some((at, text.as_ref()?.as_bytes())));
            hashes.extend(literals.map(|(at, text)| self.hash(&Feature::Segment(at, text))));
        };
        let grpc = |name: &str| -> Vec<Option<String>> {
            name.split('/').map(|part| Some(part.into())).collect()
        };
        for path in single.path.iter().flat_map(|many| &many.0) {
            segments(
                &mut hashes,
                &match path {
                    PathMatch::Pattern(pattern) => segments_of_pattern(pattern.as_str()),
                    PathMatch::Regex(regex) => segments_of_regex(regex.as_str()),
                },
            );
        }
        for service in single.grpc_service.iter().flat_map(|many| &many.0) {
            segments(&mut hashes, &grpc(service.as_str()));
        }
        for method in single.grpc_method.iter().flat_map(|many| &many.0) {
            segments(&mut hashes, &grpc(method.as_str()));
        }
        for route in single.route.iter().flat_map(|many| &many.0) {
            self.has_routes = true;
            hashes.push(self.hash(&Feature::Route(route.as_bytes())));
        }
        for host in single.host.iter().flat_map(|many| &many.0) {
            self.has_hosts = true;
            let name = host.as_str();
            let (name, dot) = name
                .strip_prefix("*.")
                .map_or((name, ""), |domain| (domain, "."));
            let name = key::host().key_of(name);
            let host = [dot.as_bytes(), name.as_bytes()].concat();
            hashes.push(self.hash(&Feature::Host(&host)));
        }
        for pattern in single.key.iter().flat_map(|many| &many.0) {
            hashes.extend(self.of_text(None, pattern, context));
        }
        for (name, many) in &single.header.0 {
            hashes.extend(
                many.0
                    .iter()
                    .filter_map(|pattern| self.of_text(Some(name.as_str()), pattern, context)),
            );
        }
        for network in single.network.iter().flat_map(|many| &many.0) {
            if let Some(network) = network_of(network.as_str()) {
                self.lengths_of_networks.insert(network.prefix_len());
                hashes.push(self.hash(&Feature::Network(network)));
            }
        }
        hashes
    }

    /// Returns the hash of the beginning of a pattern, unless that is empty.
    fn of_text(
        &mut self,
        header: Option<&str>,
        pattern: &KeyPattern,
        context: Context<'_>,
    ) -> Option<u64> {
        let (prefix, _) = pattern.literal_prefix();
        if prefix.is_empty() {
            return None;
        }
        let known = self
            .sources
            .iter()
            .position(|(source, _)| source.header.as_deref() == header);
        let at = match known {
            Some(at) => at,
            None => {
                let key = match header {
                    None => Arc::clone(context.default_key),
                    Some(name) => Arc::new(header_source(name).ok()?),
                };
                let header = header.map(Into::into);
                self.sources.push((Source { header, key }, BTreeSet::new()));
                self.sources.len() - 1
            }
        };
        self.sources[at].1.insert(prefix.len());
        Some(self.hash(&Feature::Text(at, &prefix)))
    }
}

/// Returns the network of a text.
fn network_of(text: &str) -> Option<IpNet> {
    let (first, last) = when::try_network_range(text).ok()?;
    let length = match (first, last) {
        (IpAddr::V4(first), IpAddr::V4(last)) => (first.to_bits() ^ last.to_bits()).leading_zeros(),
        (IpAddr::V6(first), IpAddr::V6(last)) => (first.to_bits() ^ last.to_bits()).leading_zeros(),
        _ => return None,
    };
    IpNet::new(first, u8::try_from(length).ok()?).ok()
}

/// Splits a match by each field that requests are found by.
fn splits(matching: &Match, context: Context<'_>, features: &mut Features) -> Vec<Split> {
    let mut splits: Vec<Split> = Vec::new();
    let mut add = |values: Vec<Match>, rest: Match| {
        let values = values.into_iter().map(|single| {
            let features = features.of(&single, context);
            (single, features)
        });
        splits.push(Split {
            values: values.collect(),
            rest,
        });
    };
    split(matching, |matching| &mut matching.path, &mut add);
    split(matching, |matching| &mut matching.route, &mut add);
    split(matching, |matching| &mut matching.grpc_method, &mut add);
    split(matching, |matching| &mut matching.grpc_service, &mut add);
    split(matching, |matching| &mut matching.key, &mut add);
    split(matching, |matching| &mut matching.host, &mut add);
    split(matching, |matching| &mut matching.network, &mut add);
    for (name, patterns) in &matching.header.0 {
        let mut rest = matching.clone();
        rest.header.0.shift_remove(name);
        let values = patterns.0.iter().map(|pattern| Match {
            header: HeaderMatches(
                [(name.clone(), pattern.clone().into())]
                    .into_iter()
                    .collect(),
            ),
            ..Match::default()
        });
        add(values.collect(), rest);
    }
    splits
}

/// Splits a match by a field, if it has that.
fn split<V: Clone>(
    matching: &Match,
    field: fn(&mut Match) -> &mut Option<Many<V>>,
    add: &mut dyn FnMut(Vec<Match>, Match),
) {
    let mut rest = matching.clone();
    let Some(values) = field(&mut rest).take() else {
        return;
    };
    let singles = values.0.into_iter().map(|value| {
        let mut single = Match::default();
        *field(&mut single) = Some(value.into());
        single
    });
    add(singles.collect(), rest);
}

impl<T> fmt::Debug for Matches<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Matches({})", self.entries.len())
    }
}
