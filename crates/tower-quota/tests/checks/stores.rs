//! Stores that do not answer, and policies that are replaced.

use tower_quota::{Check, Policy, RateLimitLayer};
use tower_quota_testkit::{ScriptedAnswer, ScriptedStore};
use tracing::subscriber::set_default;

use crate::fixture::{Client, app, in_memory, is_silent, minute, proves};
use crate::log::Log;

fn failing() -> ScriptedStore {
    let store = ScriptedStore::new();
    store.set_default(ScriptedAnswer::error("redis://:s3cret@10.0.0.7 is away"));
    store
}

#[tokio::test]
async fn store_that_never_answered_is_reported() {
    let layer = || RateLimitLayer::new(failing(), Policy::new().limit(minute()));
    proves(Check::StoreNeverAnswered, 110, layer, async |layer| {
        Client::of(app().layer(layer))
            .await
            .get_paths(110, "")
            .await;
    })
    .await;
}

#[tokio::test]
async fn store_that_answered_once_is_silent() {
    let store = failing();
    is_silent(
        RateLimitLayer::new(store.clone(), Policy::new().limit(minute())),
        async |layer| {
            let mut client = Client::of(app().layer(layer)).await;
            client.get_paths(99, "").await;
            store.set_default(ScriptedAnswer::memory());
            client.get("/", "").await;
            store.set_default(ScriptedAnswer::error("away"));
            client.get_paths(110, "").await;
        },
    )
    .await;
}

#[tokio::test]
async fn replaced_policy_warns_no_second_time() {
    let log = Log::default();
    let _guard = set_default(log.clone());
    let layer = in_memory(Policy::new());
    let handle = layer.handle();
    let mut client = Client::of(app().layer(layer)).await;
    for _ in 0..2 {
        client.get_paths(1_000, "").await;
        handle.replace_policy(Policy::new());
    }
    assert_eq!(log.lines().len(), 1);
    assert_eq!(handle.mistakes().count(Check::NoLimits), 2_000);
    assert_eq!(handle.mistakes().warnings().count(), 1);
}
