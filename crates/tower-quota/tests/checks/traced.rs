//! Events of decisions.

use std::convert::Infallible;

use http::{Request, Response};
use tower::{Layer, ServiceExt, service_fn};
use tower_quota::{Limit, MemoryStore, Policy, Quota, RateLimitLayer, key};
use tracing::Level;

use crate::log::Log;

/// Sends ten requests of one client to a limit that admits four, and returns the events.
async fn events_of_ten(admissions: Option<u32>) -> Vec<(Level, String)> {
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let policy = Policy::new()
        .limit(Limit::new("minute", Quota::per_minute(4)).by(key::header("x-api-key")));
    let layer = RateLimitLayer::new(MemoryStore::new(), policy).headers([]);
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
        of(Level::INFO).all(|(_, text)| text.contains("refused") && text.contains("minute")),
        "{events:?}"
    );
    assert!(
        events.iter().all(|(_, text)| !text.contains("secret")),
        "{events:?}"
    );
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
