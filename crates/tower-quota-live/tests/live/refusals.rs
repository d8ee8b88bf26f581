//! Tests the refusals that an instance remembers.

use std::collections::HashMap;

use http::Request;
use tower_quota_live::{Refusal, RefusalFilter, RefusalList, Time};

use crate::fixture::{Instance, new};

/// Starts an instance that admits one request of each user.
async fn instance() -> Instance {
    let instance = Instance::in_memory().await;
    instance.put(new(1)).await;
    instance
}

fn all(instance: &Instance) -> RefusalList {
    let everything = RefusalFilter::default();
    instance.live.refusals(&everything, usize::MAX)
}

#[tokio::test]
async fn last_ten_thousand_refusals_are_remembered() {
    let instance = instance().await;
    let start = all(&instance).since;
    for number in 0..10_010 {
        // The first request of a user is admitted.
        let user = number.to_string();
        for id in ["admitted", &user] {
            let request = Request::get("/").header("user", &user);
            instance.send(request.header("x-request-id", id)).await;
        }
    }
    let list = all(&instance);
    assert_eq!(list.refusals.len(), 10_000);
    let newest = list.refusals.first().unwrap().request_id.as_deref();
    let oldest = list.refusals.last().unwrap().request_id.as_deref();
    assert_eq!((newest, oldest), (Some("10009"), Some("10")));
    assert!(list.since > start);
}

#[tokio::test]
async fn flood_of_client_keeps_refusals_of_others() {
    let instance = instance().await;
    let refused = async |user: &str, id: String| {
        let request = Request::get("/").header("user", user);
        let answer = instance.send(request.header("x-request-id", id)).await;
        assert_eq!(answer.status(), 429);
    };
    for user in ["ann", "eve"] {
        assert_eq!(instance.ask(user).await, 200);
    }
    refused("ann", "ann-1".to_owned()).await;
    for number in 1..=20_000 {
        refused("eve", format!("eve-{number}")).await;
    }
    let list = all(&instance).refusals;
    let of = |id: &str| {
        let of_id = |refusal: &&Refusal| refusal.request_id.as_deref() == Some(id);
        list.iter().find(of_id).map(|refusal| refusal.count)
    };
    assert_eq!(of("ann-1"), Some(1));
    assert_eq!(
        list.iter().map(|refusal| refusal.count).sum::<u64>(),
        20_001
    );
    // The first refusals have places of their own, and the last one leaves its id.
    for id in ["eve-1", "eve-2", "eve-3"] {
        assert_eq!(of(id), Some(1), "{id}");
    }
    assert_eq!(of("eve-20000"), list.first().map(|refusal| refusal.count));
    assert!(list.len() < 1_000, "{}", list.len());
}

#[tokio::test]
async fn floods_of_many_clients_keep_few_places() {
    let instance = instance().await;
    let start = Time::now();
    for _ in 0..40 {
        for user in 0..256 {
            instance.ask(&user.to_string()).await;
        }
    }
    let seconds = Time::now().since(start).as_secs() + 1;
    let list = all(&instance).refusals;
    assert_eq!(
        list.iter().map(|refusal| refusal.count).sum::<u64>(),
        39 * 256
    );
    let mut places: HashMap<Option<String>, u64> = HashMap::new();
    for refusal in list {
        *places.entry(refusal.hash).or_default() += 1;
    }
    let most = places.values().copied().max();
    assert!(most <= Some(4 * seconds), "{most:?} in {seconds} s");
}

#[tokio::test]
async fn long_key_is_remembered_by_its_hash() {
    let instance = instance().await;
    let short = "u".repeat(128);
    let long = "u".repeat(129);
    for user in [&short, &short, &long, &long] {
        instance.ask(user).await;
    }
    let keys = |list: &RefusalList| -> Vec<Option<String>> {
        list.refusals
            .iter()
            .map(|refusal| refusal.key.clone())
            .collect()
    };
    assert_eq!(keys(&all(&instance)), [None, Some(short)]);
    let clients = instance.live.clients(&long);
    let hashes = clients.iter().map(|key| instance.live.key_hash(key));
    let filter = RefusalFilter {
        hashes: Some(hashes.collect()),
        ..RefusalFilter::default()
    };
    assert_eq!(keys(&instance.live.refusals(&filter, 9)), [None]);
}
