//! A gateway with the live page, for the browser of `scripts/page`.
//!
//! Prints the addresses of the gateway, of the admin API with and without a token, and of the metrics. The gateway
//! counts by the header `x-api-key` and by address, and answers two requests for `/slow` at the same time. For every line of input, the gateway refuses a request from each of
//! 100,000 clients. The gateway ends with the input.

use std::convert::Infallible;
use std::future::ready;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use axum::response::Response;
use axum::routing::get;
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use tokio::io::{AsyncBufReadExt, BufReader};
use tower::{Layer, Service, service_fn};
use tower_quota::{MemoryStore, Policy, RateLimitLayer, metrics, when};
use tower_quota_admin::{AdminOptions, Role};
use tower_quota_live::{LiveOptions, LiveRules, MemoryRules, NewVersion, WithoutRules};
use tower_quota_shed::{LimitSettings, Priority, ShedLayer};

const RULES: &str = "\
limits:
  - name: minute
    quota: 1200/minute
    key: header x-api-key
  - name: addresses
    quota: 100000/second
    key: client_ip
routes:
  - match: { path: /search }
    limits:
      - name: search
        quota: 5/second
        key: header x-api-key
  # A unit refills less often than the page gets snapshots, so that the page shows a busy client as limited.
  - match: { path: /export }
    limits:
      - name: export
        quota: 5 per 10 seconds
        key: header x-api-key
  - match: { path: /once }
    limits:
      - name: once
        quota: 1/hour
        key: header x-api-key
";

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let scrape = recorder()?;
    let store = MemoryStore::new();
    let layer = RateLimitLayer::new(store.clone(), Policy::new()).count_busy_clients();
    let options = LiveOptions::new().without_rules(WithoutRules::Refuse);
    let live = LiveRules::start(layer.handle(), MemoryRules::new(), options).await?;
    live.put(
        None,
        NewVersion::new(RULES, "ann").comment("the first limits"),
    )
    .await?;
    let stricter = RULES.replace("1200/minute", "600/minute");
    live.put(
        Some(1),
        NewVersion::new(stricter, "bob").comment("halve the minute"),
    )
    .await?;

    let shed = ShedLayer::new()
        .limit(LimitSettings::fixed(2))?
        .priority(Priority::Low.when(when::path("/slow")));
    let shed_handle = shed.handle();
    #[expect(clippy::disallowed_methods, reason = "stands for work of a second")]
    let slow = async || tokio::time::sleep(Duration::from_secs(1)).await;
    let service = Router::new()
        .route("/slow", get(slow))
        .layer(shed)
        .route("/", get(|| async { "hello" }))
        .route("/search", get(|| async { "found" }))
        .route("/export", get(|| async { "exported" }));
    let gateway = service.layer(layer.clone());
    let admin = |options: AdminOptions| {
        let figures = store.clone();
        tower_quota_admin::router(
            live.clone(),
            options
                .title("gateway, tests")
                .instance("test-1")
                .store_figures("memory", move || figures.stats())
                .shed_layer("slow work", shed_handle.clone()),
        )
    };
    let with_token = admin(
        AdminOptions::new()
            .bearer_token("on-call", "a token of the tests")
            .bearer_token_of_role(Role::Operate, "support", "a token of support")
            .bearer_token_of_role(Role::Read, "dashboard", "a token of the dashboard"),
    )?;
    let own_layer = admin(AdminOptions::new().authenticated_by_own_layer())?;

    serve(gateway).await?;
    serve(with_token).await?;
    serve(Router::new().nest("/limits", own_layer)).await?;
    let (handle, figures) = (layer.handle(), store.clone());
    let render = move || {
        metrics::publish_stats("gateway", &handle.stats());
        metrics::publish_stats("memory", &figures.stats());
        ready(scrape.render())
    };
    serve(Router::new().route("/metrics", get(render))).await?;
    let mut commands = BufReader::new(tokio::io::stdin()).lines();
    while commands.next_line().await?.is_some() {
        flood(&layer).await?;
        println!("flooded");
    }
    Ok(())
}

/// Installs a recorder with the buckets of the table of metrics.
fn recorder() -> Result<PrometheusHandle, BuildError> {
    let mut builder = PrometheusBuilder::new();
    for metric in metrics::METRICS
        .iter()
        .filter(|metric| !metric.buckets.is_empty())
    {
        builder = builder
            .set_buckets_for_metric(Matcher::Full(metric.name.to_owned()), metric.buckets)?;
    }
    let scrape = builder.install_recorder()?;
    metrics::describe();
    Ok(scrape)
}

/// Sends two requests from each of 100,000 clients without a network. The gateway refuses the second request.
async fn flood(layer: &RateLimitLayer<MemoryStore>) -> Result<(), http::Error> {
    let peer = ConnectInfo(SocketAddr::from(([203, 0, 113, 9], 443)));
    let mut once = layer.layer(service_fn(|_| {
        ready(Ok::<_, Infallible>(Response::new(Body::empty())))
    }));
    for client in 0..200_000 {
        let request = Request::get("/once")
            .header("x-api-key", (client / 2).to_string())
            .extension(peer);
        let Ok(_) = once.call(request.body(Body::empty())?).await;
    }
    Ok(())
}

/// Serves on a free port, and prints the address.
async fn serve(router: Router) -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}", listener.local_addr()?);
    let service = router.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, service).await });
    Ok(())
}
