//! Tests the health report and the stream of events.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use tower_quota::{MemoryStore, Policy, RateLimitLayer};
use tower_quota_admin::{AdminOptions, ProblemKind, router};
use tower_quota_dev::RedisServer;
use tower_quota_live::{LiveOptions, LiveRules, MemoryRules, WithoutRules};
use tower_quota_redis::RedisStore;
use tower_quota_rules::Rules;

use crate::server::{Instance, RULES, options, problem, send, serve};

#[tokio::test]
async fn health_names_rules_and_stores() {
    let instance = Instance::start().await;
    assert_eq!(
        instance.json("/v1/health").await["healthy"],
        false,
        "no rules yet"
    );
    let instance = Instance::with_rules().await;
    instance.ask("ann").await;
    let health = instance.json("/v1/health").await;
    assert_eq!(health["healthy"], true);
    assert_eq!(health["rules"]["in_force"]["number"], 1);
    assert_eq!(health["stores"][0]["name"], "memory");
    assert_eq!(health["stores"][0]["figures"]["entries"], 1);
}

#[tokio::test]
async fn health_names_limits_before_the_first_rules() {
    let layer = RateLimitLayer::new(MemoryStore::new(), Policy::new());
    let limits = WithoutRules::Fallback(Rules::parse(RULES).unwrap());
    let live_options = LiveOptions::new().without_rules(limits);
    let live = LiveRules::start(layer.handle(), MemoryRules::new(), live_options)
        .await
        .unwrap();
    let instance = Instance {
        admin: serve(router(live, options()).unwrap()).await,
        ..Instance::start().await
    };
    assert_eq!(
        instance.json("/v1/health").await["problems"][0],
        "No rules are in force yet: the limits of the program hold until you put rules."
    );
}

/// Starts an instance that counts in this Redis, with rules.
async fn counting_in(redis: &RedisServer) -> Instance {
    let store = RedisStore::connect(&redis.url()).await.unwrap();
    let figures = store.clone();
    let options = options().store_figures("redis", move || figures.stats());
    let instance = Instance::counting(store, MemoryRules::new(), options, LiveOptions::new()).await;
    let put = instance.put_rules(RULES).header("If-None-Match", "*");
    assert_eq!(send(put).await.status(), 200);
    instance
}

#[tokio::test]
async fn health_is_red_while_requests_pass_uncounted() {
    for (command, undo, cause) in [
        ("REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE", "read only"),
        ("CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0", "OOM"),
    ] {
        let redis = RedisServer::start();
        let instance = counting_in(&redis).await;
        assert_eq!(instance.ask("ann").await, 200);
        let health = instance.json("/v1/health").await;
        assert_eq!(health["healthy"], true);
        assert_eq!(health["stores"][0]["available"], true);

        redis.command(command).unwrap();
        for _ in 0..30 {
            assert_eq!(instance.ask("ann").await, 200);
        }
        let health = instance.json("/v1/health").await;
        assert_eq!(health["healthy"], false, "{health}");
        assert_eq!(health["stores"][0]["available"], false, "{health}");
        let outage = &health["outage"];
        // A busy machine overloads the store, so the instance counts some requests by itself.
        let uncounted = outage["uncounted"].as_u64().unwrap();
        let all = uncounted + outage["local"].as_u64().unwrap();
        assert!(uncounted > 0 && all == 30, "{health}");
        let problem = health["problems"][0].as_str().unwrap();
        assert!(problem.contains("requests/s pass uncounted"), "{problem}");
        assert!(problem.contains(cause), "{problem}");

        // The last ten seconds have uncounted requests.
        redis.command(undo).unwrap();
        assert_eq!(instance.ask("bob").await, 200);
        assert_eq!(instance.json("/v1/health").await["healthy"], false);
    }
}

#[tokio::test]
async fn idle_service_notices_the_end_of_an_outage() {
    let redis = RedisServer::start();
    let instance = counting_in(&redis).await;
    let figures = async || instance.json("/v1/health").await["stores"][0]["figures"].take();
    redis.pause();
    while figures().await["breakers_open"] == 0 {
        assert_eq!(instance.ask("ann").await, 200);
    }
    redis.resume();
    // The service has no requests from now on.
    let is_noticed = async { while figures().await["breakers_open"] != 0 {} };
    tokio::time::timeout(Duration::from_secs(20), is_noticed)
        .await
        .unwrap();

    // A Redis that answers gets no calls of the health report, after the refunds of late answers.
    let mut events = instance.get("/v1/events").await;
    let is_left_alone = async {
        loop {
            let decisions = figures().await["decisions"].take();
            for _ in 0..3 {
                events.chunk().await.unwrap().unwrap();
            }
            if figures().await["decisions"] == decisions {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), is_left_alone)
        .await
        .unwrap();
}

#[tokio::test]
async fn missing_rules_are_no_mistake_afterwards() {
    let instance = Instance::start().await;
    assert_eq!(instance.ask("ann").await, 503);
    let health = instance.json("/v1/health").await;
    let problem = health["problems"][0].as_str().unwrap();
    assert!(
        problem.starts_with("No rules are in force yet"),
        "{problem}"
    );
    let put = instance.put_rules(RULES).header("If-None-Match", "*");
    assert_eq!(send(put).await.status(), 200);
    let health = instance.json("/v1/health").await;
    assert_eq!(health["healthy"], true);
    for part in ["problems", "mistakes"] {
        assert_eq!(health[part], serde_json::json!([]), "{health}");
    }
}

#[tokio::test]
async fn readiness_needs_rules_and_no_token() {
    let instance = Instance::start().await;
    let ready = async || {
        let request = instance.anonymous(Method::GET, "/v1/ready");
        let response = send(request).await;
        let status = response.status();
        assert_eq!(response.text().await.unwrap(), "");
        status
    };
    // Probes are not limited, unlike other requests without a token.
    for _ in 0..20 {
        assert_eq!(ready().await, 503);
    }
    assert_eq!(instance.ask("ann").await, 503);
    let put = instance.put_rules(RULES).header("If-None-Match", "*");
    assert_eq!(send(put).await.status(), 200);
    assert_eq!(ready().await, 200);
    assert_eq!(instance.ask("ann").await, 200);
}

#[tokio::test]
async fn events_bring_snapshots() {
    let instance = Instance::with_rules().await;
    for _ in 0..6 {
        instance.ask("ann").await;
    }
    let mut events = instance.get("/v1/events").await;
    assert_eq!(events.headers()["content-type"], "text/event-stream");
    let first = events.chunk().await.unwrap().unwrap();
    let first = core::str::from_utf8(&first).unwrap();
    let data = first
        .lines()
        .find_map(|line| line.strip_prefix("data: "))
        .unwrap();
    let snapshot: serde_json::Value = serde_json::from_str(data).unwrap();
    assert!(first.contains("event: snapshot"), "{first}");
    assert_eq!(snapshot["health"]["healthy"], true);
    let limit = &snapshot["limits"][0];
    assert_eq!(limit["limit"], "minute");
    assert_eq!(limit["allowed"], 5);
    assert_eq!(limit["limited"], 1);
}

#[tokio::test]
async fn streams_are_bounded_and_freed() {
    let instance = Instance::with_rules().await;
    let mut streams = Vec::new();
    for _ in 0..AdminOptions::MOST_STREAMS_EACH {
        streams.push(instance.get("/v1/events").await);
    }
    problem(
        instance.get("/v1/events").await,
        ProblemKind::TooManyStreams,
    )
    .await;
    drop(streams);
    // The server notices when it writes the next snapshot, within a second.
    let is_free = async { while instance.get("/v1/events").await.status() != StatusCode::OK {} };
    tokio::time::timeout(Duration::from_secs(10), is_free)
        .await
        .unwrap();
}
