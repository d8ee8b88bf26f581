//! Tests the refusals that an instance remembers.

use http::Request;
use tower_quota_live::{RefusalFilter, RefusalList};

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
    for number in 0..=10_010 {
        let request = Request::get("/").header("user", "ann");
        let request = request.header("x-request-id", number.to_string());
        instance.send(request).await;
    }
    // The first request is admitted.
    let list = all(&instance);
    assert_eq!(list.refusals.len(), 10_000);
    let newest = list.refusals.first().unwrap().request_id.as_deref();
    let oldest = list.refusals.last().unwrap().request_id.as_deref();
    assert_eq!((newest, oldest), (Some("10010"), Some("11")));
    assert!(list.since > start);
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
