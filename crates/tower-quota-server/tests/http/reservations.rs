//! Reservations, which take an estimate and settle by a commit.

use std::time::Duration;

use serde_json::{Value, json};
use tower_quota_server::http::HttpOptions;

use crate::server::{Server, clocked};

const RULES: &str = "
defaults: { key: none }
limits:
  - { name: tokens, quota: 1000/hour fixed_window, settle: handler }
  - { name: pages, quota: 50/hour fixed_window, cost: 5, settle: handler }
  - { name: requests, quota: 9/hour fixed_window, cost: 1 }
  - { name: running, quota: 2 at once ttl 5m }
";

impl Server {
    async fn reserve(&self, cost: u64) -> Value {
        self.call("/v1/check", json!({ "cost": cost, "reserve": "30s" }))
            .await
    }

    async fn commit(&self, reserved: &Value, commit: Value) -> (u16, Value) {
        let id = reserved["reservation"]["id"].as_str().unwrap();
        self.refused(&format!("/v1/check/{id}/commit"), commit)
            .await
    }

    /// Returns the remaining units of the limits.
    async fn remaining(&self) -> Vec<u64> {
        let answer = self.call("/v1/check", json!({ "peek": true })).await;
        let limits = answer["limits"].as_array().unwrap().iter();
        limits
            .map(|limit| limit["remaining"].as_u64().unwrap())
            .collect()
    }
}

#[tokio::test]
async fn commit_replaces_the_estimate() {
    let server = Server::start(RULES).await;
    let first = server.reserve(600).await;
    assert_eq!(first["reservation"]["expires_in_ms"], 30_000);
    assert_eq!(server.remaining().await, [400, 45, 8, 1]);
    let second = server.reserve(300).await;
    assert_eq!(server.remaining().await, [100, 40, 7, 0]);
    let third = server
        .call("/v1/check", json!({ "cost": 1, "reserve": "30s" }))
        .await;
    assert_eq!(third["problem"]["violated-policies"], json!(["running"]));
    assert!(third.get("reservation").is_none());

    let (status, committed) = server
        .commit(&first, json!({ "costs": { "tokens": 20 } }))
        .await;
    assert_eq!(
        (status, committed),
        (200, json!({ "costs": { "tokens": 20, "pages": 5 } }))
    );
    assert_eq!(server.remaining().await, [680, 40, 7, 1]);
    let (_, committed) = server
        .commit(&second, json!({ "cost": 7, "costs": { "tokens": 900 } }))
        .await;
    assert_eq!(committed, json!({ "costs": { "tokens": 900, "pages": 7 } }));
    // The tokens are in debt, and the requests stay charged.
    assert_eq!(server.remaining().await, [80, 38, 7, 2]);
}

#[tokio::test]
async fn commit_without_a_cost_keeps_the_estimate() {
    let server = Server::start(RULES).await;
    let reserved = server.reserve(600).await;
    let (status, _) = server.commit(&reserved, json!({})).await;
    assert_eq!(
        (status, server.remaining().await),
        (200, vec![400, 45, 8, 2])
    );
}

#[tokio::test]
async fn reservation_is_committed_once() {
    let server = Server::start(RULES).await;
    let reserved = server.reserve(600).await;
    let (status, problem) = server
        .commit(&reserved, json!({ "costs": { "requests": 0 } }))
        .await;
    assert_eq!(status, 422);
    assert!(
        problem["detail"]
            .as_str()
            .unwrap()
            .contains("no limit \"requests\" that settles")
    );
    assert_eq!(server.commit(&reserved, json!({ "cost": 0 })).await.0, 200);
    assert_eq!(server.remaining().await, [1000, 50, 8, 2]);
    let (status, problem) = server.commit(&reserved, json!({ "cost": 0 })).await;
    assert_eq!(status, 404);
    assert!(
        problem["detail"]
            .as_str()
            .unwrap()
            .contains("another instance has it")
    );
    assert_eq!(server.remaining().await, [1000, 50, 8, 2]);
}

#[tokio::test]
async fn reservation_is_refunded_when_its_time_is_over() {
    let (clock, store) = clocked();
    let server = Server::clocked(RULES, HttpOptions::default(), store, clock.clone()).await;
    let reserved = server.reserve(600).await;
    clock.advance(Duration::from_millis(29_999));
    let other = server.reserve(1).await;
    assert_eq!(server.remaining().await, [399, 40, 7, 0]);
    clock.advance(Duration::from_millis(1));
    assert_eq!(server.commit(&reserved, json!({ "cost": 1 })).await.0, 404);
    assert_eq!(server.remaining().await, [999, 45, 7, 1]);
    assert_eq!(server.commit(&other, json!({ "cost": 1 })).await.0, 200);
}

#[tokio::test]
async fn check_without_a_reservation_settles_at_once() {
    let server = Server::start(RULES).await;
    for _ in 0..3 {
        let answer = server.call("/v1/check", json!({ "cost": 100 })).await;
        assert_eq!(answer["allowed"], true);
    }
    assert_eq!(server.remaining().await, [700, 35, 6, 2]);
}

#[tokio::test]
async fn other_instances_do_not_know_a_reservation() {
    let (clock, store) = clocked();
    let start = || Server::clocked(RULES, HttpOptions::default(), store.clone(), clock.clone());
    let (server, other) = (start().await, start().await);
    let reserved = server.reserve(600).await;
    assert_eq!(other.remaining().await, [400, 45, 8, 1]);
    assert_eq!(other.commit(&reserved, json!({})).await.0, 404);
    assert_eq!(server.commit(&reserved, json!({ "cost": 10 })).await.0, 200);
    assert_eq!(other.remaining().await, [990, 40, 8, 2]);
}

#[tokio::test]
async fn open_reservations_are_bounded() {
    let mut options = HttpOptions::default();
    options.most_reservations = 3;
    let server = Server::with(
        "limits: [{ name: hour, quota: 100/hour, key: none, settle: handler }]",
        options,
    )
    .await;
    let long = json!({ "reserve": "30s", "headers": { "x": "y".repeat(1_500) } });
    let first = server.call("/v1/check", long.clone()).await;
    let second = server.reserve(1).await;
    assert_ne!(first["reservation"]["id"], second["reservation"]["id"]);
    assert_eq!(first["reservation"]["id"].as_str().unwrap().len(), 32);
    let (status, problem) = server
        .refused("/v1/check", json!({ "reserve": "30s" }))
        .await;
    assert_eq!(status, 503);
    assert!(
        problem["detail"]
            .as_str()
            .unwrap()
            .starts_with("too many reservations")
    );
    // The refused call has taken nothing.
    assert_eq!(server.remaining().await, [98]);
    server.commit(&second, json!({})).await;
    assert_eq!(server.refused("/v1/check", long).await.0, 503);
    server.commit(&first, json!({})).await;
    assert_eq!(server.reserve(1).await["allowed"], true);
}

#[tokio::test]
async fn replaced_limits_keep_a_reservation() {
    let server = Server::start(RULES).await;
    let reserved = server.reserve(600).await;
    server
        .replace(&RULES.replace("1000/hour", "2000/hour"))
        .await;
    assert_eq!(server.remaining().await[0], 1_400);
    let (_, committed) = server
        .commit(&reserved, json!({ "costs": { "tokens": 100 } }))
        .await;
    assert_eq!(committed["costs"]["tokens"], 100);
    assert_eq!(server.remaining().await, [1_900, 45, 8, 2]);
}

#[tokio::test]
async fn garbled_ids_are_unknown() {
    let server = Server::start(RULES).await;
    for id in ["0", "%00", "%ff", "..%2f..", &"a".repeat(5_000)] {
        let path = format!("/v1/check/{id}/commit");
        let (status, _) = server.refused(&path, json!({})).await;
        assert!(matches!(status, 400 | 404), "{id}: {status}");
    }
}
