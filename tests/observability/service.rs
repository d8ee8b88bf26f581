//! A service with limits in memory, in Redis and with leases, and clients of the service.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tower_quota::{
    Leased, Limit, MemoryStore, OnStoreFailure, Policy, Quota, RateLimitLayer, RedisStore,
    RequestHead, key, metrics,
};

use tower_quota_live::{LiveOptions, LiveRules, MemoryRules, NewVersion, WithoutRules};
use tower_quota_testkit::{ScriptedAnswer, ScriptedStore};

use crate::prometheus::body;

/// Serves the app on a free port, and returns the address. Dropping the set ends the tasks.
pub(crate) async fn serve(
    tasks: &mut JoinSet<()>,
    redis_url: &str,
    scrape: PrometheusHandle,
) -> SocketAddr {
    let memory = MemoryStore::with_capacity(16);
    let turns = Quota::per_second(200).leaky_bucket().burst(1_000);
    let local = RateLimitLayer::new(memory.clone(), Policy::new()).count_busy_clients();
    let queued = RateLimitLayer::new(
        memory.clone(),
        Policy::new().limit(Limit::new("turns", turns)),
    );
    let redis = RedisStore::connect(redis_url).await.unwrap();
    let shared = RateLimitLayer::new(
        redis.clone(),
        Policy::new()
            .limit(Limit::new("shared", Quota::per_minute(20)).by(key::header("x-client")))
            .block(|head: &RequestHead<'_>| head.headers()["x-client"] == "client-39"),
    );
    let leases = Leased::new(redis.clone());
    let leased = RateLimitLayer::new(
        leases.clone(),
        Policy::new().limit(Limit::new("leased", Quota::per_second(5_000))),
    );
    let failing = ScriptedStore::new();
    failing.set_default(ScriptedAnswer::error("no answer"));
    let login = Limit::new("login", Quota::per_minute(5)).on_store_failure(OnStoreFailure::Refuse);
    let closed = RateLimitLayer::new(failing, Policy::new().limit(login));
    let live = LiveRules::start(local.handle(), MemoryRules::new(), rules_options())
        .await
        .unwrap();
    live.put(None, NewVersion::new("allow_empty: true\n", "ann"))
        .await
        .unwrap();
    let handles = (
        local.handle(),
        queued.handle(),
        shared.handle(),
        leased.handle(),
        closed.handle(),
    );
    let publish = move || {
        metrics::publish_stats("local", &handles.0.stats());
        metrics::publish_stats("queued", &handles.1.stats());
        metrics::publish_stats("shared", &handles.2.stats());
        metrics::publish_stats("leased", &handles.3.stats());
        metrics::publish_stats("closed", &handles.4.stats());
        metrics::publish_stats("main", &memory.stats());
        metrics::publish_stats("shared", &redis.stats());
        metrics::publish_stats("shared", &leases.stats());
        scrape.render()
    };
    let hello = || get(|| async { "hello" });
    let app = Router::new()
        .merge(Router::new().route("/local/{id}", hello()).layer(local))
        .merge(Router::new().route("/queued", hello()).layer(queued))
        .merge(Router::new().route("/shared", hello()).layer(shared))
        .merge(Router::new().route("/leased", hello()).layer(leased))
        .merge(Router::new().route("/closed", hello()).layer(closed))
        .route("/metrics", get(move || async move { publish() }));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tasks.spawn(async move {
        axum::serve(listener, app).await.unwrap();
        drop(live);
    });
    address
}

/// Returns options that keep the limits of the code next to the limits of the document.
fn rules_options() -> LiveOptions {
    let limit =
        |name, units| Limit::new(name, Quota::per_minute(units)).by(key::header("x-client"));
    LiveOptions::new()
        .without_rules(WithoutRules::Refuse)
        .poll_every(Duration::from_millis(100))
        .with_policy(move |policy| {
            policy
                .limit(limit("minute", 2))
                .limit(limit("trial", 1).shadow())
        })
}

/// Sends requests from a few clients to all routes, until the set is dropped.
pub(crate) fn load(tasks: &mut JoinSet<()>, address: SocketAddr) {
    for client in 0..4 {
        tasks.spawn(async move {
            let mut turns = tokio::time::interval(Duration::from_millis(10));
            for number in 0_u64.. {
                turns.tick().await;
                let field = format!("x-client: client-{}\r\n", (number * 4 + client) % 40);
                for path in [
                    format!("/local/{number}"),
                    "/queued".into(),
                    "/shared".into(),
                    "/leased".into(),
                    "/closed".into(),
                ] {
                    body(address, &format!("{path}\n{field}")).await;
                }
            }
        });
    }
}
