//! Events of decisions.

use std::convert::Infallible;

use http::{Request, Response};
use tower::{Layer, ServiceExt, service_fn};
use tower_quota::{Limit, MemoryStore, Policy, Quota, RateLimitLayer, key};
use tracing::Level;

use crate::log::Log;

const SEED: [u8; 16] = *b"a seed for tests";

/// Sends ten requests of one client to a limit that admits four, and returns the events.
async fn events_of_ten(admissions: Option<u32>) -> Vec<(Level, String)> {
    let log = Log::default();
    let _guard = tower_quota_dev::record_log(log.clone());
    let policy = Policy::new()
        .limit(Limit::new("minute", Quota::per_minute(4)).by(key::header("x-api-key")));
    let layer = RateLimitLayer::new(MemoryStore::new(), policy)
        .headers([])
        .trace_store_calls(SEED);
    let layer = match admissions {
        Some(one_of) => layer.trace_decisions(one_of),
        None => layer,
    };
    let service = layer.layer(service_fn(async |_: Request<()>| {
        Ok::<_, Infallible>(Response::new(()))
    }));
    for _ in 0..10 {
        let request = Request::get("/secret-path")
            .header("x-api-key", "secret-key")
            .body(())
            .unwrap();
        service.clone().oneshot(request).await.unwrap();
    }
    log.lines()
}

#[tokio::test]
async fn every_refusal_is_traced_without_its_key() {
    let events = events_of_ten(Some(1)).await;
    let of = |level| events.iter().filter(move |(found, _)| *found == level);
    assert_eq!(
        (of(Level::DEBUG).count(), of(Level::INFO).count()),
        (4, 6),
        "{events:?}"
    );
    assert!(
        of(Level::INFO).all(|(_, text)| text.contains("limited") && text.contains("minute")),
        "{events:?}"
    );
    assert!(
        events.iter().all(|(_, text)| !text.contains("secret")),
        "{events:?}"
    );
}

#[tokio::test]
async fn refusal_names_quota_route_and_client() {
    let log = Log::default();
    let _guard = tower_quota_dev::record_log(log.clone());
    let by_key = key::header("x-api-key");
    let limit = Limit::new("minute", Quota::per_minute(1)).by(by_key);
    let policy = Policy::new().limit(limit).version(7);
    let layer = RateLimitLayer::new(MemoryStore::new(), policy)
        .trace_decisions(0)
        .trace_store_calls(SEED);
    let app = axum::Router::new()
        .route("/users/{id}", axum::routing::get(|| async {}))
        .layer(layer);
    for _ in 0..2 {
        let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let request = Request::get("/users/secret")
            .header("x-api-key", "secret-key")
            .header("traceparent", trace)
            .header("x-request-id", "req-9");
        let request = request.body(axum::body::Body::empty()).unwrap();
        app.clone().oneshot(request).await.unwrap();
    }
    let key = key::header("x-api-key").key_of("secret-key");
    let client = format!("{:016x}", key.digest(&SEED) >> 64);
    let [(Level::INFO, event)] = &log.lines()[..] else {
        panic!("{:?}", log.lines())
    };
    for field in [
        "route=\"/users/{id}\"",
        "limits=\"minute\"",
        "algorithm=token bucket",
        "capacity=1",
        "remaining=0",
        "scope=\"header x-api-key\"",
        "version=7",
        "trace_id=\"4bf92f3577b34da6a3ce929d0e0e4736\"",
        "request_id=\"req-9\"",
        &format!("client={client}"),
    ] {
        assert!(event.contains(field), "{field} in {event}");
    }
    assert!(!event.contains("secret"), "{event}");
}

#[tokio::test]
async fn admissions_are_left_out_at_zero() {
    let events = events_of_ten(Some(0)).await;
    assert!(
        events.len() == 6 && events.iter().all(|(level, _)| *level == Level::INFO),
        "{events:?}"
    );
}

#[tokio::test]
async fn nothing_is_traced_by_default() {
    assert_eq!(events_of_ten(None).await, []);
}
