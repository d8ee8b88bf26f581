//! Counts of limits, with the names of envoyproxy/ratelimit.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use metrics::{Counter, Label};

/// The most names that have values of requests, because clients can choose such values.
const MOST_NAMED: usize = 1_000;
/// The most bytes of such a name. A value may be as long as a request.
const LONGEST_NAME: usize = 512;

/// The hits of a descriptor in all, over the limit, near the limit, within the limit, and in shadow mode.
pub(crate) type Hits = [u64; 5];

const NAMES: [&str; 5] = [
    "ratelimit_service_rate_limit_total_hits",
    "ratelimit_service_rate_limit_over_limit",
    "ratelimit_service_rate_limit_near_limit",
    "ratelimit_service_rate_limit_within_limit",
    "ratelimit_service_rate_limit_shadow_mode",
];

/// The counts of a limit.
#[derive(Debug)]
pub(crate) struct Counts([Counter; 5]);

/// The counts whose names depend on requests.
#[derive(Debug, Default)]
pub(crate) struct NamedCounts(Mutex<HashMap<Vec<String>, Counts>>);

/// Splits hits after `before` earlier ones. Hits beyond `near` are near the limit, and hits beyond `limit` are over.
pub(crate) fn split(before: u64, hits: u64, near: u64, limit: u64, is_shadow: bool) -> Hits {
    let after = before.saturating_add(hits);
    let over = after.saturating_sub(before.max(limit));
    let near = after.min(limit).saturating_sub(before.max(near));
    let within = if after > limit { 0 } else { hits };
    [hits, over, near, within, if is_shadow { over } else { 0 }]
}

impl Counts {
    /// Makes the counts of a domain and the names of its descriptors, which become the labels.
    pub(crate) fn new(domain: &str, path: &[String]) -> Self {
        let mut labels = vec![Label::new("domain", domain.to_owned())];
        if let [first, others @ ..] = path {
            labels.push(Label::new("key1", first.clone()));
            if !others.is_empty() {
                labels.push(Label::new("key2", others.join(".")));
            }
        }
        Self(NAMES.map(|name| metrics::counter!(name, labels.iter())))
    }

    pub(crate) fn add(&self, hits: Hits) {
        for (counter, hits) in self.0.iter().zip(hits) {
            if hits > 0 {
                counter.increment(hits);
            }
        }
    }
}

impl NamedCounts {
    /// Adds hits to the counts of a name. Returns whether there is a place for the name.
    pub(crate) fn add(&self, domain: &str, mut path: Vec<String>, hits: Hits) -> bool {
        if path.iter().map(String::len).sum::<usize>() > LONGEST_NAME {
            return false;
        }
        let mut named = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        path.push(domain.to_owned());
        if !named.contains_key(&path) {
            if named.len() == MOST_NAMED {
                return false;
            }
            let counts = Counts::new(domain, &path[..path.len() - 1]);
            named.insert(path.clone(), counts);
        }
        if let Some(counts) = named.get(&path) {
            counts.add(hits);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn hits_are_split_at_the_limits() {
        // Of a limit of 20, the hits after the sixteenth are near.
        for (before, hits, over, near, within) in [
            (0, 1, 0, 0, 1),
            (0, 16, 0, 0, 16),
            (15, 1, 0, 0, 1),
            (15, 2, 0, 1, 2),
            (16, 1, 0, 1, 1),
            (16, 3, 0, 3, 3),
            (16, 4, 0, 4, 4),
            (16, 5, 1, 4, 0),
            (15, 10, 5, 4, 0),
            (0, 30, 10, 4, 0),
            (19, 1, 0, 1, 1),
            (19, 3, 2, 1, 0),
            (20, 0, 0, 0, 0),
            (20, 7, 7, 0, 0),
            (22, 7, 7, 0, 0),
            (22, 0, 0, 0, 0),
            (3, u64::MAX, u64::MAX - 20, 4, 0),
        ] {
            for is_shadow in [false, true] {
                let shadow = if is_shadow { over } else { 0 };
                let expected = [hits, over, near, within, shadow];
                assert_eq!(
                    split(before, hits, 16, 20, is_shadow),
                    expected,
                    "{before} {hits}"
                );
            }
        }
        assert_eq!(split(0, 3, 0, 0, false), [3, 3, 0, 0, 0]);
    }
}
