//! Tests the gauges of clients.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use http::Request;
use tower::ServiceExt;
use tower_quota::{Limit, MemoryStore, Policy, Quota, RateLimitLayer, key, metrics};
use tower_quota_testkit::ManualClock;

use crate::recorder::{recording, samples};

/// Sends five requests a second for ten minutes, and publishes the figures of the layer.
async fn ten_minutes_of(name: &'static str, quota: Quota) {
    let clock = ManualClock::default();
    let store = || MemoryStore::with_clock(1_000, clock.clone());
    let policy = Policy::new().limit(Limit::new(name, quota).by(key::header("x-client")));
    let layer = RateLimitLayer::new(store(), policy).local_store(store());
    let handle = layer.handle();
    let app = Router::new().route("/", get(|| async {})).layer(layer);
    for _ in 0..3_000 {
        let request = Request::get("/").header("x-client", "ann");
        let request = request.body(Body::empty()).unwrap();
        app.clone().oneshot(request).await.unwrap();
        clock.advance(Duration::from_millis(200));
    }
    metrics::publish_stats(name, &handle.stats());
}

#[test]
fn client_with_admissions_is_not_at_zero() {
    let scrape = recording(async {
        ten_minutes_of("steady", Quota::per_minute(100)).await;
        ten_minutes_of("window", Quota::per_minute(100).fixed_window()).await;
        ten_minutes_of("spent", Quota::per_day(100)).await;
    });
    let samples = samples(&scrape);
    let at_zero = |layer: &str| {
        let series = format!("tower_quota_longest_at_limit_seconds{{layer=\"{layer}\"}}");
        samples[&series]
    };
    assert!(at_zero("steady") < 1.0, "{}", at_zero("steady"));
    // The first 20 seconds of a window take its units.
    assert!(at_zero("window") < 60.0, "{}", at_zero("window"));
    let spent = at_zero("spent");
    assert!((570.0..=600.0).contains(&spent), "{spent}");
}
