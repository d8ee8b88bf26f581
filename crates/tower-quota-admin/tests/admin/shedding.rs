//! Tests the figures of layers that shed load.

use std::future::pending;

use axum::Router;
use axum::routing::get;
use reqwest::Client;
use serde_json::json;
use tower_quota::when;
use tower_quota_live::MemoryRules;
use tower_quota_shed::{LimitSettings, Priority, ShedLayer};

use crate::server::{Instance, options, send, serve};

/// Returns a layer for a service that answers two requests at the same time.
pub(crate) fn two_places() -> ShedLayer {
    let layer = ShedLayer::new().limit(LimitSettings::fixed(2)).unwrap();
    layer.priority(Priority::Background.when(when::path("/export")))
}

/// Serves with this layer, answers a request, fills both places, and refuses three requests.
pub(crate) async fn overload(layer: ShedLayer) {
    let handle = layer.handle();
    let service = Router::new()
        .route("/", get(async || "hello"))
        .fallback(get(pending::<()>))
        .layer(layer);
    let (service, client) = (serve(service).await, Client::new());
    assert_eq!(send(client.get(&service)).await.status(), 200);
    for _ in 0..2 {
        tokio::spawn(send(client.get(format!("{service}/slow"))));
    }
    while handle.stats().in_progress < 2 {
        tokio::task::yield_now().await;
    }
    for path in ["", "/export", "/export"] {
        let refused = send(client.get(format!("{service}{path}"))).await;
        assert_eq!(refused.status(), 503);
    }
}

#[tokio::test]
async fn health_names_layers_that_shed_load() {
    let layer = two_places();
    let options = options().shed_layer("orders", layer.handle());
    let instance = Instance::with(MemoryRules::new(), options).await;
    let shedding = async || instance.json("/v1/health").await["shedding"][0].take();
    let idle = shedding().await;
    assert_eq!(
        (&idle["is_shedding"], &idle["refused"]),
        (&json!(false), &json!([]))
    );

    overload(layer).await;
    let mut busy = shedding().await;
    for latency in ["latency_us", "base_latency_us"] {
        assert!(busy[latency].take().is_u64(), "{latency}: {busy}");
    }
    let expected = json!({
        "layer": "orders",
        "limit": 2,
        "in_progress": 2,
        "long_bodies": 0,
        "waiting": 0,
        "is_shedding": true,
        "base_latency_us": null,
        "latency_us": null,
        "refused": [
            { "priority": "normal", "cause": "limit", "requests": 1 },
            { "priority": "background", "cause": "limit", "requests": 2 },
        ],
    });
    assert_eq!(busy, expected);
}

#[tokio::test]
async fn health_names_no_layer_without_one() {
    let health = Instance::start().await.json("/v1/health").await;
    assert_eq!(health.get("shedding"), None);
}
