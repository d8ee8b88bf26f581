//! The clients with the most requests, in bounded memory.
//!
//! This is Space-Saving (Metwally, Agrawal, El Abbadi: Efficient Computation of Frequent and Top-k Elements in Data
//! Streams, 2005). A new client takes the place of the one with the fewest requests and inherits its number as a
//! possible excess. So each number is an upper bound, its excess is at most all requests divided by the capacity, and
//! every client with more requests than that is remembered. Summaries are added as in Agarwal and others: Mergeable
//! Summaries, 2012.

use core::hash::BuildHasherDefault;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Instant;

use tower_quota_core::{Key, KeyHasher, Name};

use super::client::TopClient;
use crate::id_hasher::IdHasher;

/// Counts the requests of clients while a slice lasts.
pub(super) struct Sketch {
    capacity: usize,
    /// A binary heap: no client has more requests than those at twice its position.
    heap: Vec<Counter>,
    /// The position of each client in the heap, by the hash of limit and key.
    positions: Positions,
}

type Positions = HashMap<u64, usize, BuildHasherDefault<IdHasher>>;

/// A client, and its hash.
#[derive(Clone)]
struct Counter {
    hash: u64,
    client: TopClient,
}

/// The clients of one or more ended slices.
#[derive(Clone, Default)]
pub(super) struct Summary {
    counters: Vec<Counter>,
    /// The most requests of a client that is not in the summary.
    most_missing: u64,
}

impl Sketch {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            heap: Vec::new(),
            positions: Positions::default(),
        }
    }

    /// Counts requests of a client. The hasher is that of all sketches whose summaries are added.
    pub(super) fn count(
        &mut self,
        hasher: &KeyHasher,
        (limit, key): (Name, &Key<'_>),
        requests: u64,
        last: Instant,
        until: Instant,
    ) {
        let hash = ((hasher.digest(key) >> 64) as u64).wrapping_add(u64::from(limit.id()) << 32);
        let position = if let Some(&position) = self.positions.get(&hash) {
            let client = &mut self.heap[position].client;
            client.at_most += requests;
            client.last = last;
            client.until = until;
            position
        } else {
            let excess = if self.heap.len() < self.capacity {
                0
            } else {
                self.heap[0].client.at_most
            };
            let key = key.to_static();
            let client = TopClient {
                limit,
                key,
                at_most: excess + requests,
                excess,
                last,
                until,
            };
            let position = if self.heap.len() < self.capacity {
                self.heap.push(Counter { hash, client });
                self.rise(self.heap.len() - 1)
            } else {
                self.positions.remove(&self.heap[0].hash);
                self.heap[0] = Counter { hash, client };
                0
            };
            self.positions.insert(hash, position);
            position
        };
        self.sink(position);
    }

    /// Ends the slice: returns its clients, and starts an empty one.
    pub(super) fn take(&mut self) -> Summary {
        self.positions.clear();
        let most_missing = self.most_missing();
        Summary {
            counters: core::mem::take(&mut self.heap),
            most_missing,
        }
    }

    /// Returns the clients of the slice so far.
    pub(super) fn summary(&self) -> Summary {
        Summary {
            counters: self.heap.clone(),
            most_missing: self.most_missing(),
        }
    }

    fn most_missing(&self) -> u64 {
        if self.heap.len() < self.capacity {
            0
        } else {
            self.heap.first().map_or(0, |least| least.client.at_most)
        }
    }

    /// Moves a new client towards the root. Returns its position.
    fn rise(&mut self, mut position: usize) -> usize {
        while position > 0 {
            let parent = (position - 1) / 2;
            if self.heap[parent].client.at_most <= self.heap[position].client.at_most {
                break;
            }
            self.swap(parent, position);
            position = parent;
        }
        position
    }

    /// Moves a client whose number has grown away from the root.
    fn sink(&mut self, mut position: usize) {
        loop {
            let requests = |position: &usize| self.heap[*position].client.at_most;
            let children = [2 * position + 1, 2 * position + 2];
            let least = children
                .into_iter()
                .filter(|child| *child < self.heap.len())
                .min_by_key(requests);
            match least {
                Some(child) if requests(&child) < requests(&position) => {
                    self.swap(child, position);
                    position = child;
                }
                _ => return,
            }
        }
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.heap.swap(one, other);
        for position in [one, other] {
            self.positions.insert(self.heap[position].hash, position);
        }
    }
}

impl Summary {
    /// Adds summaries, and keeps the clients with the most requests.
    pub(super) fn sum<'a>(summaries: impl IntoIterator<Item = &'a Self>, capacity: usize) -> Self {
        let mut most_missing = 0;
        let mut sums: HashMap<u64, (Counter, u64)> = HashMap::new();
        for summary in summaries {
            most_missing += summary.most_missing;
            for counter in &summary.counters {
                match sums.entry(counter.hash) {
                    Entry::Vacant(vacant) => {
                        vacant.insert((counter.clone(), summary.most_missing));
                    }
                    Entry::Occupied(mut occupied) => {
                        let (sum, missing_with_it) = occupied.get_mut();
                        sum.client.at_most += counter.client.at_most;
                        sum.client.excess += counter.client.excess;
                        sum.client.last = sum.client.last.max(counter.client.last);
                        sum.client.until = sum.client.until.max(counter.client.until);
                        *missing_with_it += summary.most_missing;
                    }
                }
            }
        }
        let mut counters: Vec<Counter> = sums
            .into_values()
            .map(|(mut counter, missing_with_it)| {
                // It may have sent as many requests in each slice whose summary lacks it.
                let missed = most_missing - missing_with_it;
                counter.client.at_most += missed;
                counter.client.excess += missed;
                counter
            })
            .collect();
        counters.sort_by_key(|counter| core::cmp::Reverse(counter.client.at_most));
        for dropped in counters.drain(capacity.min(counters.len())..) {
            most_missing = most_missing.max(dropped.client.at_most);
        }
        Self {
            counters,
            most_missing,
        }
    }

    /// Returns the clients, those with the most certain requests first.
    pub(super) fn into_clients(self) -> Vec<TopClient> {
        let mut clients: Vec<TopClient> = self
            .counters
            .into_iter()
            .map(|counter| counter.client)
            .collect();
        clients.sort_by(|one, other| {
            other
                .at_least()
                .cmp(&one.at_least())
                .then(other.last.cmp(&one.last))
        });
        clients
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    const CAPACITY: usize = 8;

    fn key(client: u8) -> Key<'static> {
        Key::owned(const { Name::new("client") }, [client])
    }

    /// Counts each slice of clients in a sketch, and adds the summaries.
    fn sum(slices: &[Vec<(u8, u64)>]) -> Vec<TopClient> {
        let (hasher, now) = (KeyHasher::random(), crate::clients::now());
        let summaries: Vec<Summary> = slices
            .iter()
            .map(|slice| {
                let mut sketch = Sketch::new(CAPACITY);
                for (client, requests) in slice {
                    sketch.count(
                        &hasher,
                        (Name::new("limit"), &key(*client)),
                        *requests,
                        now,
                        now,
                    );
                }
                sketch.take()
            })
            .collect();
        Summary::sum(&summaries, CAPACITY).into_clients()
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
                let requests = truth[&client.key().as_bytes()[0]];
                prop_assert!((client.at_least()..=client.at_most()).contains(&requests), "{client:?}: {requests}");
                prop_assert!(client.at_most() - client.at_least() <= all / CAPACITY as u64, "{client:?} of {all}");
            }
            for (client, requests) in truth {
                let is_top = top.iter().any(|top| top.key().as_bytes() == [client]);
                prop_assert!(is_top || requests <= all / CAPACITY as u64, "{client} with {requests} of {all}");
            }
        }

        #[test]
        fn few_clients_are_counted_exactly(slices in prop::collection::vec(prop::collection::vec((0..8_u8, 1..5_u64), 0..300), 1..5)) {
            for client in sum(&slices) {
                let requests: u64 =
                    slices.iter().flatten().filter(|(other, _)| client.key().as_bytes() == [*other]).map(|(_, requests)| requests).sum();
                prop_assert_eq!((client.at_least(), client.at_most()), (requests, requests));
            }
        }
    }
}
