//! Counts of limits, with the names of envoyproxy/ratelimit.

use core::fmt;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use metrics::{Counter, Label};

/// The most names that have values of requests, because clients can choose such values.
const MOST_NAMED: usize = 1_000;

/// The counts of a limit.
#[derive(Debug)]
pub(crate) struct Counts {
    total: Counter,
    over: Counter,
    near: Counter,
    within: Counter,
    shadow: Counter,
}

/// The hits of a descriptor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hits {
    pub(crate) total: u64,
    pub(crate) over: u64,
    pub(crate) near: u64,
    pub(crate) within: u64,
    pub(crate) shadow: u64,
}

/// The counts whose names depend on requests.
#[derive(Default)]
pub(crate) struct NamedCounts(Mutex<HashMap<Vec<String>, Counts>>);

impl Hits {
    /// Splits hits after `before` earlier ones. The hits from `near` to `limit` are near the limit, and later ones are over.
    pub(crate) fn split(before: u64, hits: u64, near: u64, limit: u64) -> Self {
        let after = before.saturating_add(hits);
        let over = after.saturating_sub(before.max(limit));
        Self {
            total: hits,
            over,
            near: after.min(limit).saturating_sub(before.max(near)),
            within: if after > limit { 0 } else { hits },
            shadow: 0,
        }
    }
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
        let counter = |name: &'static str| metrics::counter!(name, labels.iter());
        Self {
            total: counter("ratelimit_service_rate_limit_total_hits"),
            over: counter("ratelimit_service_rate_limit_over_limit"),
            near: counter("ratelimit_service_rate_limit_near_limit"),
            within: counter("ratelimit_service_rate_limit_within_limit"),
            shadow: counter("ratelimit_service_rate_limit_shadow_mode"),
        }
    }

    pub(crate) fn add(&self, hits: Hits) {
        for (counter, hits) in [
            (&self.total, hits.total),
            (&self.over, hits.over),
            (&self.near, hits.near),
            (&self.within, hits.within),
            (&self.shadow, hits.shadow),
        ] {
            if hits > 0 {
                counter.increment(hits);
            }
        }
    }
}

impl NamedCounts {
    /// Adds hits to the counts of a name. Returns whether there is a place for the name.
    pub(crate) fn add(&self, domain: &str, mut path: Vec<String>, hits: Hits) -> bool {
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

impl fmt::Debug for NamedCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NamedCounts").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::Hits;

    #[test]
    fn hits_are_split_at_the_limits() {
        // Of a limit of 20, the hits from 16 on are near.
        for (before, hits, near, over, within) in [
            (0, 1, 0, 0, 1),
            (0, 16, 0, 0, 16),
            (15, 1, 0, 0, 1),
            (15, 2, 1, 0, 2),
            (16, 1, 1, 0, 1),
            (16, 3, 3, 0, 3),
            (16, 4, 4, 0, 4),
            (16, 5, 4, 1, 0),
            (15, 10, 4, 5, 0),
            (0, 30, 4, 10, 0),
            (19, 1, 1, 0, 1),
            (19, 3, 1, 2, 0),
            (20, 0, 0, 0, 0),
            (20, 7, 0, 7, 0),
            (22, 7, 0, 7, 0),
            (22, 0, 0, 0, 0),
            (3, u64::MAX, 4, u64::MAX - 20, 0),
        ] {
            let split = Hits::split(before, hits, 16, 20);
            let expected = Hits {
                total: hits,
                over,
                near,
                within,
                shadow: 0,
            };
            assert_eq!(split, expected, "{before} {hits}");
        }
    }

    #[test]
    fn limit_of_nothing_is_over() {
        let split = Hits::split(0, 3, 0, 0);
        assert_eq!((split.near, split.over, split.within), (0, 3, 0));
    }
}
