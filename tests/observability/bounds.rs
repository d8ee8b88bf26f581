//! Tests that the number of series is bounded, whatever clients send.

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use http::Request;
use tower::ServiceExt;
use tower_quota::{Limit, MemoryStore, Policy, Quota, RateLimitLayer, key, metrics, when};

use crate::recorder::{recording, samples};

#[test]
fn unknown_paths_and_keys_add_no_series() {
    let scrape = recording(async {
        let policy = Policy::new()
            .limit(Limit::new("minute", Quota::per_minute(1)).by(key::header("x-client")));
        let layer = RateLimitLayer::new(MemoryStore::with_capacity(1_000), policy);
        let handle = layer.handle();
        let app = Router::new()
            .route("/users/{id}", get(|| async {}))
            .layer(layer);
        for number in 0..100_000 {
            let path = if number % 2 == 0 {
                format!("/users/{number}")
            } else {
                format!("/{number}")
            };
            let request =
                Request::get(path).header("x-client", format!("client-{}", number % 70_000));
            app.clone()
                .oneshot(request.body(Body::empty()).unwrap())
                .await
                .unwrap();
        }
        metrics::publish_stats("api", &handle.stats());
    });
    let samples = samples(&scrape);
    assert!(samples.len() < 100, "{}", samples.len());
    assert!(
        !samples.keys().any(|series| series.contains("client-")),
        "keys are secret"
    );
    let requests = samples
        .iter()
        .filter(|(series, _)| series.starts_with("tower_quota_requests_total"));
    assert_eq!(
        requests.map(|(_, value)| *value).sum::<f64>(),
        100_000.0,
        "counters are exact"
    );
}

#[test]
fn many_limits_on_many_routes_stay_bounded() {
    const ROUTES: usize = 100;
    const LIMITS: usize = 1_000;
    let scrape = recording(async {
        // A route has a hundredth of the limits.
        let policy = (0..LIMITS).fold(Policy::new(), |policy, number| {
            let limit = Limit::new(format!("limit-{number}"), Quota::per_minute(1_000_000));
            policy.limit(limit.when(when::path(&format!("/r{}", number % ROUTES))))
        });
        let layer = RateLimitLayer::new(MemoryStore::new(), policy);
        let handle = layer.handle();
        let app = (0..ROUTES).fold(Router::new(), |app, route| {
            app.route(&format!("/r{route}"), get(|| async {}))
        });
        let app = app.layer(layer);
        for route in 0..ROUTES {
            let request = Request::get(format!("/r{route}"))
                .body(Body::empty())
                .unwrap();
            app.clone().oneshot(request).await.unwrap();
        }
        metrics::publish_stats("api", &handle.stats());
    });
    let samples = samples(&scrape);
    let series = |name: &'static str| {
        samples
            .keys()
            .filter(move |series| series.starts_with(name))
    };
    assert_eq!(series("tower_quota_requests_total").count(), ROUTES);
    assert_eq!(series("tower_quota_decisions_total").count(), LIMITS);
    let own_routes = series("tower_quota_decisions_total")
        .filter(|series| !series.contains("route=\"other\""))
        .count();
    // `other` and `none` take the first two numbers.
    assert_eq!(
        own_routes,
        (8_192_usize.div_ceil(LIMITS) - 2) * LIMITS / ROUTES
    );
    assert!(series("tower_quota_remaining_ratio").count() <= (64 + 1) * 16);
}
