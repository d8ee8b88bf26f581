//! Partition keys: only if enabled, and without revealing the key.

use http::Request;
use tower_quota::{Limit, Policy, Quota, key};

use crate::shared::{Limited, field};

fn policy() -> Policy {
    Policy::new()
        .limit(Limit::new("key", Quota::per_minute(10)).by(key::header("x-api-key")))
        .limit(Limit::new("same key", Quota::per_hour(10)).by(key::header("x-api-key")))
        .limit(Limit::new("everyone", Quota::per_minute(100)))
}

/// Returns the partition keys of three limits in this field, for an API key and a secret.
///
/// The limits are `key`, `same key` and `everyone`.
async fn partitions(secret: &str, api_key: &str, name: &str) -> [Option<String>; 3] {
    let limited = Limited::with(policy(), |layer| layer.partition_keys(secret));
    let response = limited
        .send(Request::get("/").header("x-api-key", api_key))
        .await;
    let list = field(&response, name).unwrap();
    let partition = |item: &str| {
        Some(
            item.split_once(";pk=:")?
                .1
                .strip_suffix(':')
                .unwrap()
                .to_owned(),
        )
    };
    let items: Vec<Option<String>> = list.split(", ").map(partition).collect();
    items.try_into().unwrap()
}

#[tokio::test]
async fn partition_keys_differ_by_key_and_secret() {
    let [ann, also_ann, everyone] = partitions("secret", "ann", "ratelimit").await;
    assert_eq!(ann, also_ann);
    assert_eq!(everyone, None, "all requests have one partition");
    assert_eq!(
        partitions("secret", "ann", "ratelimit-policy").await,
        [ann.clone(), also_ann, everyone]
    );
    let others = [
        partitions("secret", "bob", "ratelimit").await,
        partitions("Secret", "ann", "ratelimit").await,
    ]
    .map(|[key, ..]| key);
    assert!(!others.contains(&ann), "{ann:?} {others:?}");
    // 12 bytes, for any key.
    assert_eq!(ann.unwrap().len(), 16);
    assert_eq!(
        partitions("secret", &"long".repeat(100), "ratelimit").await[0]
            .as_ref()
            .unwrap()
            .len(),
        16
    );
}

#[tokio::test]
async fn refusal_has_the_partition_key() {
    let policy =
        Policy::new().limit(Limit::new("key", Quota::per_minute(1)).by(key::header("x-api-key")));
    let limited = Limited::with(policy, |layer| layer.partition_keys([7; 16]));
    let ask = || limited.send(Request::get("/").header("x-api-key", "ann"));
    let admitted = field(&ask().await, "ratelimit").unwrap();
    let refused = ask().await;
    assert_eq!(refused.status(), 429);
    assert_eq!(field(&refused, "ratelimit").unwrap(), admitted);
    assert!(admitted.starts_with("\"key\";r=0;t=60;pk=:"), "{admitted}");
}

#[tokio::test]
async fn keys_are_read_once_for_partitions() {
    let asked = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    for on in [false, true] {
        asked.store(0, std::sync::atomic::Ordering::Relaxed);
        let counted = asked.clone();
        let tenant = key::from_fn("tenant", move |_| {
            counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            Some("ann")
        });
        let policy = Policy::new().limit(Limit::new("tenant", Quota::per_minute(1)).by(tenant));
        let limited = Limited::with(policy, |layer| {
            if on {
                layer.partition_keys("secret")
            } else {
                layer
            }
        });
        let response = limited.get().await;
        assert_eq!(field(&response, "ratelimit").unwrap().contains("pk"), on);
        assert_eq!(asked.load(std::sync::atomic::Ordering::Relaxed), 1);
    }
}
