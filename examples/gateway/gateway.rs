//! Runs a gateway with limits that you can change while requests run. The rules are in a file or in Redis, and the
//! admin API has a separate port, which `serve_admin/mod.rs` serves.
//!
//! Run the example:
//!
//!     ADMIN_TOKEN=an-example-token cargo run --release -p tower-quota-gateway --example gateway
//!
//! Set these variables:
//!
//! * `ADMIN_TOKEN`: the secret of the admin API, at least 16 bytes.
//! * `ADMIN_TOKENS`: instead, a file with a line `name:role:token` for each person and program. The roles are `read`,
//!   `operate` and `rules`. The gateway reads the file again when it changes.
//! * `RULES`: the path of your rules, or the URL of Redis. The gateway follows the file. With a URL, all instances share
//!   rules and counters. Put the first rules with the admin API. Until then the limits of `rules.yaml` apply.
//! * `REDIS_URL`: the URL of Redis, if instances share counters, blocks, overrides and the audit log, but read rules from a
//!   file.
//! * `UPSTREAM`: the service behind the gateway, such as `http://127.0.0.1:8080`. Otherwise the gateway answers itself.
//! * `NAME`: the name of this gateway in Redis, by default `gateway`. Gateways with one name share rules and counters.
//! * `LOCAL_COPY`: a file that keeps the last good rules.
//! * `LOG_REFUSALS`: with any value, the gateway logs each refusal, with the client as a hash.
//! * `PORT`, `ADMIN_PORT`, `HOST`: where the gateway listens. By default the service listens on 127.0.0.1:3000. The admin
//!   API listens on 127.0.0.1:3001, where Prometheus finds `/metrics`. Port 0 means any free port.
//!
//! A URL of Redis is `redis://HOST`, `redis+sentinel://HOST,HOST/PRIMARY` or `redis+cluster://HOST,HOST`. Write
//! `rediss` for TLS.
//!
//! Add to your `Cargo.toml`:
//!
//!     tower-quota = { version = "0.1", features = ["axum", "metrics", "tls", "top"] }
//!     tower-quota-admin = { version = "0.1", features = ["redis"] }
//!     tower-quota-live = { version = "0.1", features = ["axum", "file", "metrics", "tls"] }
//!     tower-quota-rules = "0.1"
//!     axum = "0.8"
//!     hyper = { version = "1", features = ["http1", "server"] }
//!     hyper-util = { version = "0.1", features = ["client-legacy", "http1", "service", "tokio"] }
//!     metrics-exporter-prometheus = { version = "0.18", default-features = false }
//!     tokio = { version = "1", features = ["macros", "net", "rt-multi-thread", "signal", "sync"] }
//!     tracing-subscriber = "0.3"

mod serve_admin;

use std::error::Error;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use tokio::net::TcpListener;
use tower_quota::{BoxStore, MemoryStore, Policy, RateLimitLayer, RedisStore, Store, metrics};
use tower_quota_admin::AdminOptions;
use tower_quota_live::{FileRules, LiveOptions, LiveRules, RedisRules, RuleStore, WithoutRules};
use tower_quota_rules::Rules;

use crate::serve_admin::serve_admin;

const RULES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/rules.yaml");

#[tokio::main]
async fn main() -> ExitCode {
    match serve().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn serve() -> Result<(), Box<dyn Error>> {
    // The layer and the store log outages and mistakes. You see them only with a subscriber.
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .init();
    let source = std::env::var("RULES").unwrap_or_else(|_| RULES.to_owned());
    let mut options = AdminOptions::new().title("gateway");
    options = match (std::env::var("ADMIN_TOKENS"), std::env::var("ADMIN_TOKEN")) {
        (Ok(path), _) => options.token_file(path),
        (Err(_), Ok(token)) => options.bearer_token("admin", token),
        _ => return Err(
            "set ADMIN_TOKEN to a secret of 16 bytes or more, or ADMIN_TOKENS to a file of tokens"
                .into(),
        ),
    };
    let mut live_options = LiveOptions::new();
    // Install the recorder before the first request.
    let scrape = recorder()?;

    let has_redis_rules = source.starts_with("redis");
    let redis_url = match has_redis_rules {
        true => Some(source.clone()),
        false => std::env::var("REDIS_URL").ok(),
    };
    let mut rules: Option<Arc<dyn RuleStore>> = None;
    let publish_store: Arc<dyn Fn() + Send + Sync>;
    let counters = if let Some(url) = redis_url {
        let name = std::env::var("NAME").unwrap_or_else(|_| "gateway".into());
        let redis = RedisStore::options()
            // Name your service. Two services with one prefix share their counters, rules, lists and hashes of clients.
            .prefix(&name)
            .connect_lazily()
            .connect(&url)
            .await?;
        live_options = LiveOptions::from_store(&redis)?;
        let in_redis = RedisRules::from_store(&redis)?;
        if !has_redis_rules {
            // Rules from a file have blocks, overrides and audit records in Redis, for all gateways of this name.
            live_options = live_options.blocks_in(in_redis);
        } else {
            rules = Some(Arc::new(in_redis));
            // Until you put the first rules into Redis, apply the rules of the example.
            let fallback = Rules::parse(include_str!("rules.yaml"))?;
            live_options = live_options.without_rules(WithoutRules::Fallback(fallback));
        }
        let (figures, published) = (redis.clone(), redis.clone());
        options = options.store_figures("redis", move || figures.stats());
        publish_store = Arc::new(move || metrics::publish_stats("redis", &published.stats()));
        BoxStore::new(redis)
    } else {
        let memory = MemoryStore::new();
        let (figures, published) = (memory.clone(), memory.clone());
        options = options.store_figures("memory", move || figures.stats());
        publish_store = Arc::new(move || metrics::publish_stats("memory", &published.stats()));
        BoxStore::new(memory)
    };
    let rules = match rules {
        Some(rules) => rules,
        None => Arc::new(FileRules::new(&source)?),
    };
    if let Ok(path) = std::env::var("LOCAL_COPY") {
        live_options = live_options.local_copy(path);
    }

    let mut layer = RateLimitLayer::new(counters.clone(), Policy::new()).count_busy_clients();
    if std::env::var_os("LOG_REFUSALS").is_some() {
        // To log admissions too, give a number above 0 and show events of the level DEBUG.
        layer = layer.trace_decisions(0);
    }
    let live = LiveRules::start_shared(layer.handle(), rules, live_options).await?;
    let handle = layer.handle();
    let render = move || {
        metrics::publish_stats("gateway", &handle.stats());
        publish_store();
        std::future::ready(scrape.render())
    };
    // Prometheus needs no token.
    let admin = tower_quota_admin::router(live.clone(), options)?.route("/metrics", get(render));

    let upstream = std::env::var("UPSTREAM").ok();
    let app = match upstream {
        Some(upstream) => Router::new().fallback(forward).with_state(Upstream {
            address: upstream.trim_end_matches('/').to_owned(),
            client: Client::builder(TokioExecutor::new()).build_http(),
        }),
        None => Router::new().fallback(async || "hello\n"),
    };

    let (service, address) = listen("PORT", "3000").await?;
    let (admins, admin_address) = listen("ADMIN_PORT", "3001").await?;
    println!("listening on http://{address}");
    println!("admin on http://{admin_address}");
    println!("rules of {}", live.state().store);
    println!("try:  wrk -c 16 -d 10 -H 'x-api-key: free_1' http://{address}/");
    println!("      curl -H \"Authorization: Bearer $ADMIN_TOKEN\" http://{admin_address}/v1/top");

    // Serve the admin API in a task, because the shutdown must not wait for event streams.
    tokio::spawn(serve_admin(admins, admin));
    axum::serve(
        service,
        app.layer(layer)
            .into_make_service_with_connect_info::<SocketAddr>(),
    )
    .with_graceful_shutdown(terminated())
    .await?;
    live.close(Duration::from_secs(1)).await;
    counters.close(Duration::from_secs(5)).await;
    Ok(())
}

/// The service behind the gateway.
#[derive(Clone)]
struct Upstream {
    address: String,
    client: Client<HttpConnector, Body>,
}

/// Forwards an admitted request to the upstream.
async fn forward(State(upstream): State<Upstream>, mut request: Request) -> Response {
    let path = request
        .uri()
        .path_and_query()
        .map_or("/", |path| path.as_str());
    match format!("{}{path}", upstream.address).parse::<Uri>() {
        Ok(uri) => *request.uri_mut() = uri,
        Err(_) => return StatusCode::BAD_REQUEST.into_response(),
    }
    match upstream.client.request(request).await {
        Ok(response) => response.map(Body::new).into_response(),
        Err(_) => StatusCode::BAD_GATEWAY.into_response(),
    }
}

/// Installs a recorder with the buckets of every histogram.
fn recorder() -> Result<PrometheusHandle, BuildError> {
    let mut builder = PrometheusBuilder::new();
    for metric in metrics::METRICS
        .iter()
        .filter(|metric| !metric.buckets.is_empty())
    {
        builder =
            builder.set_buckets_for_metric(Matcher::Full(metric.name.into()), metric.buckets)?;
    }
    let scrape = builder.install_recorder()?;
    metrics::describe();
    Ok(scrape)
}

/// Waits for ctrl-c, or for SIGTERM, which Docker and Kubernetes send to stop a service.
async fn terminated() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut sigterm) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = sigterm.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}

async fn listen(
    variable: &str,
    default: &str,
) -> Result<(TcpListener, SocketAddr), Box<dyn Error>> {
    let host = std::env::var("HOST").unwrap_or_else(|_| "127.0.0.1".into());
    let port = std::env::var(variable).unwrap_or_else(|_| default.into());
    let address = format!("{host}:{port}");
    let listener = TcpListener::bind(&address)
        .await
        .inspect_err(|_| eprintln!("cannot listen on {address}; set {variable} to another port"))?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}
