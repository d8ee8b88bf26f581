//! Keys that are never found, limits that never apply, and limits that two layers count.

use axum::Router;
use axum::routing::get;
use tower_layer::Layer;
use tower_quota::{BoxStore, Check, MemoryStore, MissingKey, Policy, RateLimitLayer, key, when};

use crate::fixture::{Client, app, in_memory, is_silent, minute, proves};

#[tokio::test]
async fn key_that_is_never_found_is_reported() {
    for missing in [
        MissingKey::ShareOneCounter,
        MissingKey::Skip,
        MissingKey::Refuse,
    ] {
        let by_header =
            || Policy::new().limit(minute().by(key::header("x-api-key")).when_missing(missing));
        proves(
            Check::KeyNeverFound,
            1_000,
            || in_memory(by_header()),
            async |layer| {
                Client::of(app().layer(layer))
                    .await
                    .get_paths(1_000, "x-apikey: ann\r\n")
                    .await;
            },
        )
        .await;
    }
}

#[tokio::test]
async fn key_that_is_found_once_is_silent() {
    is_silent(
        in_memory(Policy::new().limit(minute().by(key::header("x-api-key")))),
        async |layer| {
            let mut client = Client::of(app().layer(layer)).await;
            client.get_paths(999, "").await;
            client.get("/", "x-api-key: ann\r\n").await;
            client.get_paths(100, "").await;
        },
    )
    .await;
}

#[tokio::test]
async fn route_inside_nest_is_reported() {
    let limited = || in_memory(Policy::new().limit(minute().when(when::route("/items"))));
    proves(Check::UnreachableLimit, 110, limited, nested).await;
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
