//! The time of a scrape with many limits and routes.

use std::error::Error;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::routing::get;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder};
use tower::Service;
use tower_quota::metrics::METRICS;
use tower_quota::{Limit, MemoryStore, Policy, Quota, RateLimitLayer};

use crate::report::median;

const LIMITS: usize = 10_000;
const ROUTES: usize = 100;

/// Prints the median times of publishing and of rendering, and the number of series.
#[expect(clippy::disallowed_methods, reason = "a measurement")]
pub(crate) fn scrape() -> Result<(), Box<dyn Error>> {
    let mut builder = PrometheusBuilder::new();
    for metric in METRICS.iter().filter(|metric| !metric.buckets.is_empty()) {
        builder = builder
            .set_buckets_for_metric(Matcher::Full(metric.name.to_owned()), metric.buckets)?;
    }
    let recorder = builder.build_recorder();
    let scrape = recorder.handle();
    metrics::set_global_recorder(recorder)?;

    // A request has a hundredth of the limits. Each of them admits one request and refuses another.
    let policy = (0..LIMITS).fold(Policy::new(), |policy, number| {
        let path = format!("/r{}", number % ROUTES);
        let limit = Limit::new(format!("limit-{number}"), Quota::per_hour(1));
        policy.limit(limit.when(move |head| head.path() == path))
    });
    let layer = RateLimitLayer::new(MemoryStore::new(), policy);
    let handle = layer.handle();
    let app = (0..ROUTES).fold(Router::new(), |app, route| {
        app.route(&format!("/r{route}"), get(async || {}))
    });
    let mut app: Router = app.layer(layer);
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    for _ in 0..2 {
        for route in 0..ROUTES {
            let request = Request::get(format!("/r{route}")).body(Body::empty())?;
            runtime.block_on(app.call(request))?;
        }
    }
    let mut rounds = [Vec::new(), Vec::new()];
    let mut text = String::new();
    for _ in 0..21 {
        let start = Instant::now();
        handle.publish_metrics("api");
        let published = Instant::now();
        text = scrape.render();
        rounds[0].push((published - start).as_secs_f64() * 1e3);
        rounds[1].push(published.elapsed().as_secs_f64() * 1e3);
    }
    let series = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .count();
    let [publish, render] = rounds.map(|mut figures| median(&mut figures));
    println!(
        "{LIMITS} limits x {ROUTES} routes: {series} series, publish {publish:.1} ms, render {render:.1} ms"
    );
    Ok(())
}
