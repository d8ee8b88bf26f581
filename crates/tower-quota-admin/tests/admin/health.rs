//! Tests the health report and the stream of events.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use tower_quota_admin::{AdminOptions, ProblemKind};

use crate::server::{Instance, RULES, problem, send};

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
