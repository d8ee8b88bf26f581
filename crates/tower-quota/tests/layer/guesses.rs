//! Requests without a key count by the keys that they have.

use axum::Router;
use axum::routing::get;
use http::Request;
use tower::{Layer, ServiceExt};
use tower_quota::settle::only_failures;
use tower_quota::{Limit, OnStoreFailure, Policy, Quota, RateLimit, RateLimitLayer, Store, key};

use crate::axum_apps::{served, status};
use crate::fixture::{Inner, ScriptedStore, StoreControl, failing_store, slow_store};
use crate::shared::{per_minute, policy_of, secs, stopped_store};

#[derive(Clone)]
struct Account(u64);

fn address(units: u64) -> Limit {
    per_minute("address", units).by(key::header("address"))
}

fn account() -> Limit {
    per_minute("account", 100).by(key::header("account"))
}

fn service<S: Store>(store: S, policy: Policy) -> RateLimit<Inner, S> {
    RateLimitLayer::new(store, policy).layer(Inner::default())
}

/// Sends a request with an address and without an account.
async fn guess<S: Store>(service: &RateLimit<Inner, S>) -> u16 {
    let request = Request::get("/").header("address", "192.0.2.1");
    let answer = service.clone().oneshot(request.body(()).unwrap()).await;
    answer.unwrap().status().as_u16()
}

#[tokio::test]
async fn guesses_of_api_keys_exceed_address_limit() {
    let policy = Policy::new()
        .look_up(secs(5), |head| {
            let is_known = head.path() == "/ann";
            async move { is_known.then_some(Account(7)) }
        })
        .limit(
            per_minute("account", 100).by(key::extension("account", |account: &Account| {
                Some(account.0.to_be_bytes())
            })),
        )
        .limit(per_minute("address", 3).by(key::client_ip()));
    let store = stopped_store();
    let layer = RateLimitLayer::new(store, policy);
    let app = served(Router::new().fallback(get(|| async {})).layer(layer)).await;
    for (path, expected) in [
        ("/1", 400),
        ("/2", 400),
        ("/ann", 200),
        ("/3", 429),
        ("/ann", 429),
    ] {
        assert_eq!(status(app, path).await, expected, "{path}");
    }
}

#[tokio::test]
async fn request_without_key_settles_and_holds_nothing() {
    for store in [ScriptedStore::new(), slow_store()] {
        let streams = Limit::new("streams", Quota::concurrent(5)).by(key::header("address"));
        let policy = policy_of(per_minute("everyone", 9))
            .limit(streams)
            .limit(account())
            .limit(address(2).settle(only_failures()));
        let service = service(store.clone(), policy);
        for expected in [400, 400, 429] {
            assert_eq!(guess(&service).await, expected);
        }
        assert_eq!(store.charge_counts(), [1; 3]);
        assert_eq!(service.get_ref().calls(), 0);
    }
}

#[tokio::test]
async fn request_without_any_key_makes_no_call() {
    let store = ScriptedStore::new();
    let everyone = per_minute("everyone", 9);
    let policy = policy_of(account()).limit(everyone);
    assert_eq!(guess(&service(store.clone(), policy)).await, 400);
    assert_eq!(store.charge_counts(), [0; 0]);
}

#[tokio::test]
async fn outage_keeps_reason_of_refusal() {
    for (choice, expected) in [
        (OnStoreFailure::Allow, [400, 400]),
        (OnStoreFailure::Refuse, [400, 400]),
        (OnStoreFailure::Local, [400, 429]),
    ] {
        let policy = policy_of(account()).limit(address(1));
        let service = service(failing_store(), policy.on_store_failure(choice));
        let statuses = [guess(&service).await, guess(&service).await];
        assert_eq!(statuses, expected, "{choice:?}");
        assert_eq!(service.get_ref().calls(), 0);
    }
}
