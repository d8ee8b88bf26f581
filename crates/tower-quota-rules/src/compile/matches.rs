//! Indexes matches.
//!
//! A match is listed under a feature that matching requests must have, such as a path segment, a
//! host, the prefix of a key, or a network. The features of a request lead to candidates, and
//! conditions decide. A match with several features is listed under its rarest feature.

use core::hash::BuildHasher;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use foldhash::quality::RandomState;
use ipnet::IpNet;
use tower_quota::RequestHead;
use tower_quota::key::{self, ClientIp};
use tower_quota::when::Condition;

use super::conditions::{ComparedText, Context};
use super::key_source::KeySource;
use super::literals::{segments_of_call, segments_of_path};
use crate::document::{Many, Match};
use crate::text::{KeyPattern, Network};

pub(crate) struct Matches<T> {
    entries: Vec<Entry<T>>,
    /// The entries without a feature, candidates for every request.
    always: Vec<u32>,
    /// The entries by the hash of a feature. Conditions decide, so collisions are harmless.
    listed: HashMap<u64, Vec<u32>, RandomState>,
    features: Features,
    client_ip: Arc<ClientIp>,
}

struct Entry<T> {
    value: T,
    holds: Box<dyn Condition>,
}

#[derive(Hash)]
enum Feature<'a> {
    /// A segment of the path, by its position.
    Segment(usize, &'a [u8]),
    Route(&'a [u8]),
    /// The end of a host, complete or from a dot.
    Host(&'a [u8]),
    /// The prefix of a key, by the position of its source.
    Text(usize, &'a [u8]),
    Network(IpNet),
}

#[derive(Default)]
struct Features {
    hasher: RandomState,
    sources: Vec<MatchSource>,
    lengths_of_hosts: BTreeSet<usize>,
    lengths_of_networks: BTreeSet<u8>,
    segments: usize,
    has_routes: bool,
}

struct MatchSource {
    key: Arc<KeySource>,
    lengths: BTreeSet<usize>,
}

impl<T> Matches<T> {
    pub(crate) fn new<'m>(
        matches: impl IntoIterator<Item = (&'m Match, T)>,
        context: &Context<'_>,
    ) -> Self {
        let mut index = Self {
            entries: Vec::new(),
            always: Vec::new(),
            listed: HashMap::default(),
            features: Features::default(),
            client_ip: Arc::clone(&context.client_ip),
        };
        let mut shared: HashMap<u64, usize, RandomState> = HashMap::default();
        let (mut all, mut texts) = (Vec::new(), Vec::new());
        for (matching, value) in matches {
            let holds = context.condition(matching);
            index.entries.push(Entry { value, holds });
            let fields = index.features.of(matching, context, &mut texts);
            for feature in fields.iter().flatten().flatten() {
                *shared.entry(*feature).or_default() += 1;
            }
            all.push(fields);
        }
        for (entry, fields) in (0..).zip(all) {
            let (mut least, mut chosen) = (usize::MAX, None);
            for values in fields {
                // Take the rarest feature of every value. If a value has no feature, the index cannot
                // find the match by this field.
                let rarest =
                    |features: Vec<u64>| features.into_iter().min_by_key(|one| shared[one]);
                let rarest: Option<Vec<u64>> = values.into_iter().map(rarest).collect();
                let Some(rarest) = rarest else { continue };
                let sharing = rarest.iter().map(|one| shared[one]).sum();
                if sharing < least {
                    (least, chosen) = (sharing, Some(rarest));
                }
            }
            match chosen {
                None => index.always.push(entry),
                Some(features) => {
                    for feature in features {
                        index.listed.entry(feature).or_default().push(entry);
                    }
                }
            }
        }
        index
    }

    /// Visits the values of all matches of a request, perhaps several times.
    pub(crate) fn find(&self, head: &RequestHead<'_>, mut visit: impl FnMut(&T)) {
        let mut examine = |entries: &[u32]| {
            for entry in entries {
                if let Some(entry) = self.entries.get(*entry as usize)
                    && (entry.holds)(head)
                {
                    visit(&entry.value);
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

    /// Visits the hashes of a request's features, at least of all required features.
    fn each_of(&self, head: &RequestHead<'_>, client_ip: &ClientIp, visit: &mut dyn FnMut(u64)) {
        let in_doubt = head.holds_in_doubt();
        let mut each_segment = |path: &str| {
            let segments = path.split('/').skip(1).take(self.segments).enumerate();
            segments
                .for_each(|(at, text)| visit(self.hash(&Feature::Segment(at, text.as_bytes()))));
        };
        // Also list the present path, because gRPC conditions compare no other.
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
            && let Some(route) = head.matched_route()
        {
            visit(self.hash(&Feature::Route(route.as_bytes())));
        }
        if !self.lengths_of_hosts.is_empty() {
            head.host_matches(|host| {
                for length in self.lengths_of_hosts.range(..=host.len()) {
                    let end = &host[host.len() - length..];
                    visit(self.hash(&Feature::Host(end)));
                }
                !in_doubt
            });
        }
        for (at, source) in self.sources.iter().enumerate() {
            source.key.each_text(head, &mut |text| {
                for length in source.lengths.range(..=text.len()) {
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

    fn of_segments(&mut self, segments: &[Option<String>]) -> Vec<u64> {
        self.segments = self.segments.max(segments.len());
        let hash = |(at, text): (usize, &Option<String>)| {
            Some(self.hash(&Feature::Segment(at, text.as_ref()?.as_bytes())))
        };
        segments.iter().enumerate().filter_map(hash).collect()
    }

    fn of_host(&mut self, pattern: &str) -> Vec<u64> {
        let domain = pattern.strip_prefix("*.");
        let name = key::host().key_of(domain.unwrap_or(pattern));
        let dot: &[u8] = if domain.is_some() { b"." } else { b"" };
        let end = [dot, name.as_bytes()].concat();
        self.lengths_of_hosts.insert(end.len());
        vec![self.hash(&Feature::Host(&end))]
    }

    fn of_network(&mut self, network: &Network) -> Vec<u64> {
        let network = network.to_net();
        self.lengths_of_networks.insert(network.prefix_len());
        vec![self.hash(&Feature::Network(network))]
    }

    /// Returns the features of a text, which is looked up among the texts of the sources.
    fn of_text<'m>(
        &mut self,
        text: ComparedText<'m>,
        pattern: &KeyPattern,
        context: &Context<'_>,
        texts: &mut Vec<ComparedText<'m>>,
    ) -> Vec<u64> {
        let (prefix, _) = pattern.literal_prefix();
        if prefix.is_empty() {
            return Vec::new();
        }
        let at = match texts.iter().position(|known| *known == text) {
            Some(at) => at,
            None => {
                texts.push(text);
                self.sources.push(MatchSource {
                    key: context.compared(&text),
                    lengths: BTreeSet::new(),
                });
                self.sources.len() - 1
            }
        };
        self.sources[at].lengths.insert(prefix.len());
        vec![self.hash(&Feature::Text(at, &prefix))]
    }

    fn of<'m>(
        &mut self,
        matching: &'m Match,
        context: &Context<'_>,
        texts: &mut Vec<ComparedText<'m>>,
    ) -> Vec<Vec<Vec<u64>>> {
        let mut fields = Vec::new();
        fields.extend(each(&matching.path, |path| {
            self.of_segments(&segments_of_path(path))
        }));
        fields.extend(each(&matching.route, |route| {
            self.has_routes = true;
            vec![self.hash(&Feature::Route(route.as_bytes()))]
        }));
        fields.extend(each(&matching.grpc_method, |name| {
            self.of_segments(&segments_of_call(name.as_str()))
        }));
        fields.extend(each(&matching.grpc_service, |name| {
            self.of_segments(&segments_of_call(name.as_str()))
        }));
        fields.extend(each(&matching.host, |host| self.of_host(host.as_str())));
        fields.extend(each(&matching.network, |network| self.of_network(network)));
        for (text, patterns) in ComparedText::of(matching) {
            let patterns = patterns.0.iter();
            fields.push(
                patterns
                    .map(|pattern| self.of_text(text, pattern, context, texts))
                    .collect(),
            );
        }
        fields
    }
}

fn each<V>(
    values: &Option<Many<V>>,
    features: impl FnMut(&V) -> Vec<u64>,
) -> Option<Vec<Vec<u64>>> {
    Some(values.as_ref()?.0.iter().map(features).collect())
}
