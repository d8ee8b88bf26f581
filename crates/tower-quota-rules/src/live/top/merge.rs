//! Adds the figures of several instances up.
//!
//! A client's numbers are added. An instance that does not list it may have had as many requests of it as the bound that
//! it publishes: that much is added to the upper bound alone.

use core::time::Duration;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use tower_quota::TopClient;

use super::published::{List, ListedClient};

/// The clients with most requests on all instances that have published their figures.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MergedTop {
    /// The clients, those with the most certain requests first; at most [`TopClient::MOST`].
    pub clients: Vec<MergedClient>,
    /// The number of instances whose figures are in it.
    pub instances: usize,
    /// The age of its oldest figures. It grows while Redis does not answer.
    pub age: Duration,
}

/// A client with many requests, counted on all instances.
///
/// Its number is known within bounds: at least [`at_least`](Self::at_least), at most [`at_most`](Self::at_most). The
/// difference is at most one 50th of the requests that all instances have counted in the window.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MergedClient {
    /// The limit: of a refused client that which refused it.
    pub limit: String,
    /// The scope of its key, such as `header x-api-key`.
    pub scope: String,
    /// The hash of its key, as audit records have it: 16 hexadecimal digits.
    pub hash: String,
    /// Its key, if the instances publish [readable ones](super::super::LiveOptions::readable_keys).
    pub text: Option<String>,
    /// The requests that it certainly sent.
    pub at_least: u64,
    /// The most requests that it may have sent, of those that were counted.
    pub at_most: u64,
    /// The time until its last refused request would be admitted.
    pub retry_after: Duration,
}

/// Adds lists up. Each has an age, by which the waits of its clients are shorter.
pub(super) fn merge<'l>(
    lists: impl IntoIterator<Item = (&'l List, Duration)>,
) -> Vec<MergedClient> {
    let mut missing = 0_u64;
    let mut sums: HashMap<(&str, &str, &str), (MergedClient, u64)> = HashMap::new();
    for (list, age) in lists {
        missing = missing.saturating_add(list.missing);
        for client in &list.clients {
            let found = MergedClient::of(client, age);
            match sums.entry((&client.limit, &client.scope, &client.hash)) {
                Entry::Vacant(vacant) => {
                    vacant.insert((found, list.missing));
                }
                Entry::Occupied(mut occupied) => {
                    let (sum, missing_with_it) = occupied.get_mut();
                    sum.at_least = sum.at_least.saturating_add(found.at_least);
                    sum.at_most = sum.at_most.saturating_add(found.at_most);
                    sum.retry_after = sum.retry_after.max(found.retry_after);
                    sum.text = sum.text.take().or(found.text);
                    *missing_with_it = missing_with_it.saturating_add(list.missing);
                }
            }
        }
    }
    let mut clients: Vec<MergedClient> = sums
        .into_values()
        .map(|(mut client, missing_with_it)| {
            client.at_most = client.at_most.saturating_add(missing - missing_with_it);
            client
        })
        .collect();
    // The last fields only make the order the same each time.
    clients.sort_by(|one, other| {
        let (one, other) = (
            (one.at_least, one.at_most, &one.hash),
            (other.at_least, other.at_most, &other.hash),
        );
        other.cmp(&one)
    });
    clients.truncate(TopClient::MOST);
    clients
}

impl MergedClient {
    fn of(client: &ListedClient, age: Duration) -> Self {
        Self {
            limit: client.limit.clone(),
            scope: client.scope.clone(),
            hash: client.hash.clone(),
            text: client.text.clone(),
            at_least: client.most.saturating_sub(client.excess),
            at_most: client.most,
            retry_after: Duration::from_millis(client.retry).saturating_sub(age),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// The clients that a sketch of the test remembers, and those that it publishes.
    const REMEMBERED: usize = 12;
    const PUBLISHED: usize = 6;

    /// Counts requests by Space-Saving, and publishes the clients with most.
    fn published(requests: &[(u8, u64)]) -> List {
        let mut sketch: Vec<(u8, u64, u64)> = Vec::new();
        for (client, number) in requests {
            if let Some(counter) = sketch.iter_mut().find(|counter| counter.0 == *client) {
                counter.1 += number;
            } else if sketch.len() < REMEMBERED {
                sketch.push((*client, *number, 0));
            } else if let Some(least) = sketch.iter_mut().min_by_key(|counter| counter.1) {
                *least = (*client, least.1 + number, least.1);
            }
        }
        sketch.sort_by_key(|counter| core::cmp::Reverse(counter.1));
        let missing = sketch.get(PUBLISHED).map_or(0, |counter| counter.1);
        let listed = |&(client, most, excess): &(u8, u64, u64)| ListedClient {
            limit: "limit".into(),
            scope: "client".into(),
            hash: client.to_string(),
            text: None,
            most,
            excess,
            retry: u64::from(client),
        };
        List {
            missing,
            clients: sketch.iter().take(PUBLISHED).map(listed).collect(),
        }
    }

    fn instance() -> impl Strategy<Value = Vec<(u8, u64)>> {
        prop::collection::vec((prop_oneof![0..4_u8, 0..40_u8], 1..5_u64), 0..300)
    }

    proptest! {
        #[test]
        fn merged_bounds_hold_true_numbers(instances in prop::collection::vec(instance(), 1..6)) {
            let mut truth: BTreeMap<String, u64> = BTreeMap::new();
            for (client, requests) in instances.iter().flatten() {
                *truth.entry(client.to_string()).or_default() += requests;
            }
            let all: u64 = truth.values().sum();
            let lists: Vec<List> = instances.iter().map(|requests| published(requests)).collect();
            let merged = merge(lists.iter().map(|list| (list, Duration::ZERO)));
            // An instance lacks less than a share of its requests, and what it remembers of others is bounded too.
            let bound = all / (PUBLISHED as u64 + 1) + all / REMEMBERED as u64;
            for client in &merged {
                let requests = truth[&client.hash];
                prop_assert!((client.at_least..=client.at_most).contains(&requests), "{client:?}: {requests}");
                prop_assert!(client.at_most - client.at_least <= bound, "{client:?} of {all}");
            }
            for (client, requests) in truth {
                let is_listed = merged.iter().any(|merged| merged.hash == client);
                prop_assert!(is_listed || requests <= bound, "{client} with {requests} of {all}");
            }
            let mut order: Vec<u64> = merged.iter().map(|client| client.at_least).collect();
            order.sort_unstable_by(|one, other| other.cmp(one));
            prop_assert_eq!(order, merged.iter().map(|client| client.at_least).collect::<Vec<_>>());
        }

        #[test]
        fn merged_order_of_instances_is_irrelevant(instances in prop::collection::vec(instance(), 1..6)) {
            let lists: Vec<List> = instances.iter().map(|requests| published(requests)).collect();
            let forwards = merge(lists.iter().map(|list| (list, Duration::ZERO)));
            let backwards = merge(lists.iter().rev().map(|list| (list, Duration::ZERO)));
            prop_assert_eq!(forwards, backwards);
        }
    }

    #[test]
    fn waits_shrink_with_the_age_of_figures() {
        let list = published(&[(9, 1)]);
        let wait = |age| {
            merge([(&list, Duration::from_millis(age))])[0]
                .retry_after
                .as_millis()
        };
        assert_eq!((wait(0), wait(4), wait(20)), (9, 5, 0));
    }
}
