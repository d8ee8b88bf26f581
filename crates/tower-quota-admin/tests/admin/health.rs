//! Tests the health report and the stream of events.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::json;
use tower_quota_admin::{AdminOptions, ProblemKind};

use crate::server::{Instance, RULES, problem};

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
    assert_eq!(
        (&health["healthy"], &health["rules"]["in_force"]["number"]),
        (&json!(true), &json!(1))
    );
    assert_eq!(
        (
            &health["stores"][0]["name"],
            &health["stores"][0]["figures"]["entries"]
        ),
        (&json!("memory"), &json!(1))
    );
}

#[tokio::test]
async fn readiness_needs_rules_and_no_token() {
    let instance = Instance::start().await;
    let ready = async || {
        let request = instance.anonymous(Method::GET, "/v1/ready");
        let response = request.send().await.unwrap();
        let status = response.status();
        assert_eq!(response.text().await.unwrap(), "");
        status
    };
    // Probes are not limited, unlike other requests without a token.
    for _ in 0..20 {
        assert_eq!(ready().await, StatusCode::SERVICE_UNAVAILABLE);
    }
    assert_eq!(instance.ask("ann").await, StatusCode::SERVICE_UNAVAILABLE);
    let put = instance.put_rules(RULES).header("If-None-Match", "*");
    assert_eq!(put.send().await.unwrap().status(), StatusCode::OK);
    assert_eq!(ready().await, StatusCode::OK);
    assert_eq!(instance.ask("ann").await, StatusCode::OK);
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
    assert_eq!(
        (&limit["limit"], &limit["allowed"], &limit["limited"]),
        (&json!("minute"), &json!(5), &json!(1))
    );
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
