//! Counts of limits, with the names of envoyproxy/ratelimit.

use std::collections::HashMap;
use std::sync::Arc;

use metrics::{Counter, Label};
use tower_quota_core::Lock;

/// The most names of all configurations since the start, because recorders forget no name.
const MOST: usize = 16_384;
/// The most names that have values of requests, because clients can choose such values.
const MOST_WITH_VALUES: usize = 1_000;
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

/// The counts by their names.
#[derive(Debug, Default)]
pub(crate) struct NamedCounts(Lock<Known>);

#[derive(Debug, Default)]
struct Known {
    named: HashMap<Vec<String>, Arc<Counts>>,
    with_values: usize,
}

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
    fn new(name: &[String]) -> Arc<Self> {
        let mut labels = Vec::new();
        if let [domain, path @ ..] = name {
            labels.push(Label::new("domain", domain.clone()));
            if let [first, others @ ..] = path {
                labels.push(Label::new("key1", first.clone()));
                if !others.is_empty() {
                    labels.push(Label::new("key2", others.join(".")));
                }
            }
        }
        Arc::new(Self(
            NAMES.map(|name| metrics::counter!(name, labels.iter())),
        ))
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
    /// Returns the counts of a domain and the names of its descriptors. Further names share the counts of the domain "other".
    pub(crate) fn of(&self, mut name: Vec<String>) -> Arc<Counts> {
        let Known { named, .. } = &mut *self.0.lock();
        if named.len() >= MOST && !named.contains_key(&name) {
            name = vec!["other".to_owned()];
        }
        let counts = named
            .entry(name)
            .or_insert_with_key(|name| Counts::new(name));
        Arc::clone(counts)
    }

    /// Adds hits to the counts of a name with values of a request. Returns whether there is a place for the name.
    pub(crate) fn add(&self, name: Vec<String>, hits: Hits) -> bool {
        if name.iter().map(String::len).sum::<usize>() > LONGEST_NAME {
            return false;
        }
        let Known { named, with_values } = &mut *self.0.lock();
        if !named.contains_key(&name) {
            if *with_values == MOST_WITH_VALUES || named.len() >= MOST {
                return false;
            }
            *with_values += 1;
        }
        let counts = named
            .entry(name)
            .or_insert_with_key(|name| Counts::new(name));
        counts.add(hits);
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
