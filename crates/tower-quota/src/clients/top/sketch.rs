//! Space-Saving (Metwally, Agrawal, El Abbadi, 2005), with sums by Agarwal and others (Mergeable Summaries, 2012).
//!
//! A new client replaces the client with the fewest requests, and inherits the number as a possible excess. The excess
//! is at most all requests divided by the capacity.

use core::cmp::Reverse;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Instant;

use tower_quota_core::{Key, Name};

use super::client::TopClient;

#[derive(Clone)]
pub(super) struct Sketch {
    capacity: usize,
    clients: HashMap<u64, TopClient>,
    /// The maximum number of requests of a client that the sketch does not contain.
    missing: u64,
}

pub(super) struct Seen<'k> {
    pub(super) limit: Name,
    pub(super) key: Key<'k>,
    pub(super) requests: u64,
    pub(super) last: Instant,
    pub(super) until: Instant,
}

impl Sketch {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            clients: HashMap::new(),
            missing: 0,
        }
    }

    pub(super) fn count(&mut self, hash: u64, seen: &Seen<'_>) {
        if let Some(client) = self.clients.get_mut(&hash) {
            client.at_most += seen.requests;
            client.last = seen.last;
            client.until = seen.until;
            return;
        }
        if self.clients.len() >= self.capacity
            && let Some((&least, client)) = self.clients.iter().min_by_key(|(_, it)| it.at_most)
        {
            self.missing = client.at_most;
            self.clients.remove(&least);
        }
        let client = TopClient {
            limit: seen.limit,
            key: seen.key.to_static(),
            at_most: self.missing + seen.requests,
            excess: self.missing,
            last: seen.last,
            until: seen.until,
            since: None,
        };
        self.clients.insert(hash, client);
    }

    pub(super) fn top<'a>(
        sketches: impl IntoIterator<Item = &'a Self>,
        most: usize,
    ) -> Vec<TopClient> {
        let mut sum = Self::new(most);
        for sketch in sketches {
            sum.add(sketch);
        }
        let mut clients: Vec<TopClient> = sum.clients.into_values().collect();
        clients.sort_by_key(|client| Reverse(client.at_most));
        clients.truncate(most);
        clients.sort_by_key(|client| Reverse((client.at_least(), client.last)));
        clients
    }

    fn add(&mut self, other: &Self) {
        for (hash, client) in &mut self.clients {
            if !other.clients.contains_key(hash) {
                client.at_most += other.missing;
                client.excess += other.missing;
            }
        }
        for (hash, theirs) in &other.clients {
            match self.clients.entry(*hash) {
                Entry::Occupied(mut entry) => {
                    let ours = entry.get_mut();
                    ours.at_most += theirs.at_most;
                    ours.excess += theirs.excess;
                    ours.last = ours.last.max(theirs.last);
                    ours.until = ours.until.max(theirs.until);
                }
                Entry::Vacant(entry) => {
                    let ours = entry.insert(theirs.clone());
                    ours.at_most += self.missing;
                    ours.excess += self.missing;
                }
            }
        }
        self.missing += other.missing;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use tower_quota_core::Name;

    use super::*;

    const CAPACITY: usize = 8;

    fn seen(client: u8, requests: u64, now: Instant) -> Seen<'static> {
        let (limit, scope) = const { (Name::new("limit"), Name::new("client")) };
        Seen {
            limit,
            key: Key::owned(scope, [client]),
            requests,
            last: now,
            until: now,
        }
    }

    fn sum(slices: &[Vec<(u8, u64)>]) -> Vec<TopClient> {
        let now = crate::observe::now();
        let sketches = slices.iter().map(|slice| {
            let mut sketch = Sketch::new(CAPACITY);
            for (client, requests) in slice {
                sketch.count(u64::from(*client), &seen(*client, *requests, now));
            }
            sketch
        });
        let sketches: Vec<Sketch> = sketches.collect();
        Sketch::top(&sketches, CAPACITY)
    }

    fn slice() -> impl Strategy<Value = Vec<(u8, u64)>> {
        prop::collection::vec((prop_oneof![0..4_u8, 0..40_u8], 1..5_u64), 0..300)
    }

    proptest! {
        #[test]
        fn bounds_hold_the_true_numbers(slices in prop::collection::vec(slice(), 1..5)) {
            let mut truth: BTreeMap<u8, u64> = BTreeMap::new();
            for (client, requests) in slices.iter().flatten() {
                *truth.entry(*client).or_default() += requests;
            }
            let all: u64 = truth.values().sum();
            let top = sum(&slices);
            prop_assert!(top.len() <= CAPACITY);
            for client in &top {
                let requests = truth[&client.key.as_bytes()[0]];
                prop_assert!((client.at_least()..=client.at_most).contains(&requests), "{client:?}: {requests}");
                prop_assert!(client.at_most - client.at_least() <= all / CAPACITY as u64, "{client:?} of {all}");
            }
            for (client, requests) in truth {
                let is_top = top.iter().any(|top| top.key.as_bytes() == [client]);
                prop_assert!(is_top || requests <= all / CAPACITY as u64, "{client} with {requests} of {all}");
            }
        }

        #[test]
        fn few_clients_are_counted_exactly(slices in prop::collection::vec(prop::collection::vec((0..8_u8, 1..5_u64), 0..300), 1..5)) {
            for client in sum(&slices) {
                let requests: u64 =
                    slices.iter().flatten().filter(|(other, _)| client.key.as_bytes() == [*other]).map(|(_, requests)| requests).sum();
                prop_assert_eq!((client.at_least(), client.at_most), (requests, requests));
            }
        }
    }
}
