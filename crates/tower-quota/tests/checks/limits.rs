//! Limits that never apply, that two layers count, and that are too many.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::routing::get;
use tower_layer::Layer;
use tower_quota::{
    BoxStore, Check, Limit, MemoryStore, Name, Policy, Quota, RateLimitLayer, RequestHead, key,
    store::Charge, when,
};

use crate::fixture::{Client, app, in_memory, is_silent, minute, proves};

#[tokio::test]
async fn route_inside_nest_is_reported() {
    let limited = || in_memory(Policy::new().limit(minute().when(when::route("/items"))));
    proves(Check::UnreachableLimit, 110, limited, nested).await;
}

#[tokio::test]
async fn skipped_route_inside_nest_is_reported() {
    let limited = || {
        let skipping = Policy::new().skip(when::route("/items"));
        in_memory(skipping.limit(minute()))
    };
    proves(Check::UnreachableLimit, 110, limited, nested).await;
}

#[tokio::test]
async fn condition_inside_nest_runs_once() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let limit = minute().when(move |_: &RequestHead<'_>| {
        counted.fetch_add(1, Ordering::Relaxed);
        false
    });
    nested(in_memory(Policy::new().limit(limit))).await;
    assert_eq!(runs.load(Ordering::Relaxed), 110);
}

/// Requests a route inside a nest.
async fn nested(layer: RateLimitLayer<MemoryStore>) {
    let items = Router::new().route("/items", get(|| async {})).layer(layer);
    let mut client = Client::of(Router::new().nest("/api", items)).await;
    for _ in 0..110 {
        assert_eq!(client.get("/api/items", "").await, 200);
    }
}

#[tokio::test]
async fn path_with_its_prefix_is_silent() {
    for condition in [
        when::path("/api/items"),
        when::path("/items"),
        when::route("/api/items"),
        when::path("/api/other"),
    ] {
        is_silent(
            in_memory(Policy::new().limit(minute().when(condition))),
            nested,
        )
        .await;
    }
}

#[tokio::test]
async fn route_condition_around_app_is_reported() {
    let limited = || in_memory(Policy::new().limit(minute().when(when::route("/{*path}"))));
    proves(Check::UnreachableLimit, 110, limited, async |layer| {
        Client::of_service(layer.layer(app()))
            .await
            .get_paths(110, "")
            .await;
    })
    .await;
    // Scans of paths that no route has prove nothing.
    is_silent(limited(), async |layer| {
        let routes = Router::new().route("/login", get(|| async {})).layer(layer);
        Client::of(routes).await.get_paths(110, "").await;
    })
    .await;
}

#[tokio::test]
async fn limit_of_two_layers_is_reported() {
    proves(
        Check::CountedTwice,
        30,
        || in_memory(Policy::new().limit(minute())),
        async |layer| {
            Client::of(app().layer(layer.clone()).layer(layer))
                .await
                .get_paths(30, "")
                .await;
        },
    )
    .await;
}

#[tokio::test]
async fn cloned_store_of_two_layers_is_reported() {
    let store = MemoryStore::new();
    // Each box is a different value over the same store.
    let layer = || RateLimitLayer::new(BoxStore::new(store.clone()), Policy::new().limit(minute()));
    proves(Check::CountedTwice, 30, layer, async |inner| {
        Client::of(app().layer(inner).layer(layer()))
            .await
            .get_paths(30, "")
            .await;
    })
    .await;
}

#[tokio::test]
async fn limits_of_different_stores_are_silent() {
    is_silent(in_memory(Policy::new().limit(minute())), async |layer| {
        let other = in_memory(Policy::new().limit(minute()));
        Client::of(app().layer(layer).layer(other))
            .await
            .get_paths(30, "")
            .await;
    })
    .await;
}

fn hour() -> Limit {
    Limit::new("minute", Quota::per_hour(1_000))
}

/// Sends 30 requests through each of two layers.
async fn two_routes(layer: RateLimitLayer<MemoryStore>, other: RateLimitLayer<MemoryStore>) {
    for layer in [other, layer] {
        let mut client = Client::of(app().layer(layer)).await;
        client.get_paths(30, "").await;
    }
}

#[tokio::test]
async fn one_name_with_two_quotas_is_reported() {
    let store = RefCell::default();
    let layer = || {
        // The servers of the first run still count in the first store.
        let fresh = MemoryStore::new();
        store.replace(fresh.clone());
        RateLimitLayer::new(fresh, Policy::new().limit(minute()))
    };
    proves(Check::TwoQuotas, 20, layer, async |layer| {
        let other = RateLimitLayer::new(store.take(), Policy::new().limit(hour()));
        two_routes(layer, other).await;
    })
    .await;
}

#[tokio::test]
async fn names_with_separate_counters_are_silent() {
    for other in [
        Policy::new().limit(hour().by(key::method())),
        Policy::new().limit(hour().quota_with(|_| None)),
        Policy::new().limit(minute()),
        // A new version reaches the layers one after the other.
        Policy::new().limit(hour()).version(2),
    ] {
        let store = MemoryStore::new();
        let first = Policy::new().limit(minute()).version(1);
        is_silent(RateLimitLayer::new(store.clone(), first), async |layer| {
            two_routes(layer, RateLimitLayer::new(store.clone(), other.clone())).await;
        })
        .await;
    }
    is_silent(in_memory(Policy::new().limit(minute())), async |layer| {
        two_routes(layer, in_memory(Policy::new().limit(hour()))).await;
    })
    .await;
}

#[tokio::test]
async fn replaced_quota_is_silent() {
    is_silent(in_memory(Policy::new().limit(minute())), async |layer| {
        let handle = layer.handle();
        let mut client = Client::of(app().layer(layer)).await;
        client.get_paths(30, "").await;
        handle.replace_policy(Policy::new().limit(hour()));
        client.get_paths(30, "").await;
    })
    .await;
}

#[tokio::test]
async fn handle_lists_limits_without_requests() {
    let typo = Limit::new("login", Quota::per_hour(9)).when(when::path("/logn"));
    let layer = in_memory(Policy::new().limit(minute()).limit(typo));
    let handle = layer.handle();
    assert_eq!(handle.unmet_limits(), ["minute", "login"].map(Name::new));
    let mut client = Client::of(app().layer(layer)).await;
    client.get_paths(1_100, "").await;
    assert_eq!(handle.unmet_limits(), [Name::new("login")]);
    client.get("/logn", "").await;
    assert!(handle.unmet_limits().is_empty());
}

#[tokio::test]
async fn request_with_too_many_limits_is_reported() {
    let crowded = || {
        (0..=Charge::MOST).fold(Policy::new(), |policy, number| {
            let limit = Limit::new(format!("limit-{number}"), Quota::per_hour(1_000));
            policy.limit(limit.when(|head: &RequestHead<'_>| head.path() == "/0"))
        })
    };
    proves(
        Check::TooManyLimits,
        1,
        || in_memory(crowded()),
        async |layer| {
            Client::of(app().layer(layer)).await.get_paths(9, "").await;
        },
    )
    .await;
}
