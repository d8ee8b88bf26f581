//! The routers of the ports.

use std::sync::Arc;

use axum::Router;
use axum::http::{StatusCode, Uri, header};
use axum::routing::get;
use tonic::service::Routes;
use tonic_health::server::HealthReporter;
use tower_quota_admin::AdminOptions;

use super::health::Health;
use super::parts::{Documents, Parts};
use crate::check::Reservations;
use crate::http::Problem;
use crate::messages::ratelimit::rate_limit_service_server::RateLimitServiceServer;
use crate::metrics::{self, CountedCalls};
use crate::options::Options;
use crate::{auth, check};

/// The most bytes of a call of Envoy.
const LARGEST_CALL: usize = 256 << 10;

/// Returns what the gRPC port serves, and the reporter of its health.
pub(super) fn grpc(parts: &Parts) -> (Router, HealthReporter) {
    let (reporter, health) = tonic_health::server::health_reporter();
    let mut routes = Routes::new(health);
    if let Some(envoy) = &parts.envoy {
        let service = RateLimitServiceServer::new(CountedCalls::new(envoy.clone()))
            .max_decoding_message_size(LARGEST_CALL);
        routes = routes.add_service(service);
    }
    (routes.into_axum_router(), reporter)
}

/// Returns what the HTTP port serves, and the reservations of its checks.
pub(super) fn http(
    options: &Options,
    parts: &Parts,
    health: &Health,
) -> (Router, Option<Arc<Reservations>>) {
    let settings = &options.http;
    let (mut routes, mut reservations) = (health.routes(false), None);
    if let Some(Documents { gate, .. }) = &parts.documents {
        let (checks, open) = check::routes(gate, settings);
        routes = routes.merge(auth::router(gate, settings)).merge(checks);
        reservations = Some(open);
    }
    if let Some(envoy) = &parts.envoy {
        routes = routes.merge(check::json_router(envoy.clone(), settings));
    }
    let routes = routes.fallback(async |uri: Uri| {
        let reason = match uri.path().trim_matches('/') {
            "v1/auth" | "v1/check" => "needs a document: start the server with --rules PATH",
            "json" => "needs limits of Envoy: start the server with --envoy PATH",
            "metrics" => "is at the admin port, and at the address in --metrics",
            _ => "is not served here: see docs/reference/server.md for the paths of each port",
        };
        not_found(&uri, reason)
    });
    (routes, reservations)
}

fn not_found(uri: &Uri, reason: &str) -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        format_args!("{} {reason}", uri.path()),
    )
}

/// Returns what the admin port serves.
pub(super) fn admin(
    options: &Options,
    parts: &Parts,
    health: &Health,
    metrics: Router,
) -> Result<Router, String> {
    let routes = health.routes(true).merge(metrics);
    let Some(documents) = parts
        .documents
        .as_ref()
        .filter(|_| options.rules.has_admin())
    else {
        return Ok(routes.fallback(async |uri: Uri| {
            let fix =
                "needs the admin API: start the server with --rules PATH and --admin-token SECRET";
            not_found(&uri, fix)
        }));
    };
    let mut admin = AdminOptions::new().title("tower-quota-server");
    if let Some(token) = &options.rules.admin_token {
        admin = admin.bearer_token("admin", token);
    }
    if let Some(path) = &options.rules.admin_tokens {
        admin = admin.token_file(path);
    }
    if let Some(redis) = parts.store.redis().cloned() {
        admin = admin.store_figures("redis", move || redis.stats());
    }
    let admin = tower_quota_admin::router(documents.live.clone(), admin).map_err(|error| {
        format!("--admin-token (TOWER_QUOTA_ADMIN_TOKEN), --admin-tokens (TOWER_QUOTA_ADMIN_TOKENS): {error}")
    })?;
    Ok(admin.merge(routes))
}

/// Returns the page for Prometheus.
pub(super) fn metrics(path: &str, parts: &Parts) -> Router {
    let parts = parts.clone();
    let render = async move || {
        publish(&parts);
        let text = "text/plain; version=0.0.4; charset=utf-8";
        ([(header::CONTENT_TYPE, text)], metrics::render())
    };
    Router::new().route(path, get(render))
}

/// Sets the gauges of stores and layers.
fn publish(parts: &Parts) {
    use tower_quota::metrics::publish_stats;
    if let Some(documents) = &parts.documents {
        publish_stats("documents", &documents.gate.handle().stats());
    }
    if let Some(redis) = parts.store.redis() {
        publish_stats("redis", &redis.stats());
    }
    if let Some(leases) = parts.store.leases() {
        publish_stats("leases", &leases);
    }
}
