//! Checks of described requests.

use std::time::Duration;

use serde_json::{Value, json};
use tower_quota::{Check, TopWindow};
use tower_quota_server::http::HttpOptions;

use crate::server::{Server, clocked, detail, send, status};

const RULES: &str = "
limits: [{ name: minute, quota: 5/minute fixed_window }]
routes:
  - match: { method: POST, host: shop.example.com, path: \"/orders/{id}\" }
    limits: [{ name: orders, quota: 1/hour fixed_window, cost: 1, key: header x-user }]
";

#[tokio::test]
async fn answer_has_everything_for_the_client() {
    let server = Server::start(RULES).await;
    let order = json!({
        "method": "POST", "path": "/orders/7?x=1", "host": "shop.example.com:443",
        "address": "192.0.2.1", "headers": { "X-User": "ann", "accept": ["a", "b"] },
    });
    let admitted = server.call("/v1/check", order.clone()).await;
    let fields = &admitted["fields"];
    assert_eq!(
        fields["ratelimit"],
        "\"minute\";r=4;t=48, \"orders\";r=0;t=3600"
    );
    assert_eq!(admitted["limits"].as_array().unwrap().len(), 2);
    let minute = json!({
        "limit": "minute", "capacity": 5, "remaining": 4, "taken": 1, "full_after_ms": 60_000,
        "outcome": "allowed", "shadow": false,
    });
    assert_eq!(admitted["limits"][0], minute);
    let verdict = |answer: &Value| (answer["allowed"].clone(), answer["status"].clone());
    assert_eq!(verdict(&admitted), (true.into(), 200.into()));

    let refused = server.call("/v1/check", order).await;
    assert_eq!(verdict(&refused), (false.into(), 429.into()));
    assert_eq!(refused["retry_after_ms"], 3_600_000);
    assert_eq!(refused["fields"]["retry-after"], "3600");
    assert_eq!(
        refused["fields"]["content-type"],
        "application/problem+json"
    );
    assert_eq!(refused["problem"]["violated-policies"], json!(["orders"]));
    assert_eq!(refused["limits"][1]["outcome"], "limited");
    assert_eq!(refused["degraded"], false);
}

#[tokio::test]
async fn cost_counts_for_limits_without_their_own() {
    let rules = "
limits:
  - { name: units, quota: 10/minute }
  - { name: requests, quota: 3/minute, cost: 1 }
";
    let server = Server::start(rules).await;
    let check = |cost: u64| json!({ "address": "192.0.2.1", "cost": cost });
    let answer = server.call("/v1/check", check(7)).await;
    assert_eq!(answer["limits"][0]["taken"], 7);
    assert_eq!(answer["limits"][1]["taken"], 1);
    let refused = server.call("/v1/check", check(4)).await;
    assert_eq!(refused["problem"]["violated-policies"], json!(["units"]));
    assert_eq!(server.call("/v1/check", check(0)).await["allowed"], true);
    let never = server.call("/v1/check", check(u64::MAX)).await;
    assert_eq!(
        (&never["status"], &never["limits"][0]["outcome"]),
        (&400.into(), &"never".into())
    );
    assert!(never.get("retry_after_ms").is_none());
}

#[tokio::test]
async fn keys_come_from_the_caller() {
    let rules = "
defaults: { key: [code user, client_ip] }
limits:
  - { name: user, quota: 1/minute }
  - { name: teams, quota: 9/minute, key: { all: [code team, method] }, missing: skip }
tiers: { pro: { limits: { user: 2/minute } } }
assign: [{ key: \"pro-*\", tier: pro }]
";
    let server = Server::start(rules).await;
    let check = |user: &str| json!({ "keys": { "user": user, "team": "blue", "other": "x" } });
    assert_eq!(
        server.call("/v1/check", check("ann")).await["allowed"],
        true
    );
    assert_eq!(
        server.call("/v1/check", check("ann")).await["allowed"],
        false
    );
    let pro = server.call("/v1/check", check("pro-1")).await;
    assert_eq!(pro["limits"][0]["capacity"], 2);
    assert_eq!(pro["limits"][1]["remaining"], 7);
    // A gateway gives no keys, and nobody can give them by a field.
    assert_eq!(
        server.statuses(&["192.0.2.1", "192.0.2.1"]).await,
        [204, 429]
    );
}

#[tokio::test]
async fn peek_takes_nothing() {
    let rules = format!("{RULES}block: [{{ path: /secret }}]\nskip: [{{ path: /free }}]\n");
    let server = Server::start(&rules).await;
    let peek = |cost: u64| json!({ "address": "192.0.2.1", "cost": cost, "peek": true });
    for _ in 0..2 {
        let answer = server.call("/v1/check", peek(5)).await;
        assert_eq!(
            (&answer["allowed"], &answer["limits"][0]["remaining"]),
            (&true.into(), &5.into())
        );
    }
    server
        .call("/v1/check", json!({ "address": "192.0.2.1", "cost": 2 }))
        .await;
    let answer = server.call("/v1/check", peek(4)).await;
    assert_eq!(
        (&answer["allowed"], &answer["status"]),
        (&false.into(), &429.into())
    );
    assert_eq!(answer["limits"][0]["remaining"], 3);
    assert_eq!(answer["retry_after_ms"], 60_000);
    assert_eq!(server.call("/v1/check", peek(6)).await["status"], 400);
    for (path, expected) in [("/secret", 403), ("/free", 200)] {
        let peek = json!({ "path": path, "peek": true });
        assert_eq!(server.call("/v1/check", peek).await["status"], expected);
    }
}

#[tokio::test]
async fn peek_knows_penalties() {
    let rules = "
defaults: { key: none }
limits: [{ name: minute, quota: 2/minute, penalty: { after: 1, step: 10m, most: 1h } }]
";
    let (clock, store) = clocked();
    let server = Server::clocked(rules, HttpOptions::default(), store, clock.clone()).await;
    for cost in [2, 1, 1] {
        server.call("/v1/check", json!({ "cost": cost })).await;
    }
    clock.advance(Duration::from_secs(120));
    let peeked = server.call("/v1/check", json!({ "peek": true })).await;
    let checked = server.call("/v1/check", json!({})).await;
    assert_eq!(peeked["status"], 429);
    assert_eq!(peeked["status"], checked["status"]);
    assert!(
        peeked["retry_after_ms"].as_u64().unwrap() > 60_000,
        "{peeked}"
    );
}

#[tokio::test]
async fn flagged_requests_pass_as_limited() {
    let server =
        Server::start("limits: [{ name: minute, quota: 1/minute, key: none, over: flag }]").await;
    for outcome in ["allowed", "limited", "limited"] {
        for call in [json!({ "peek": true }), json!({})] {
            let answer = server.call("/v1/check", call).await;
            assert_eq!(
                (&answer["allowed"], &answer["limits"][0]["outcome"]),
                (&true.into(), &outcome.into())
            );
        }
    }
}

#[tokio::test]
async fn undescribable_requests_are_problems() {
    let server = Server::start(RULES).await;
    for (call, expected) in [
        (json!({}), "send the `address`"),
        (json!({ "path": "orders" }), "\"orders\" is relative"),
        (json!({ "path": "/a b" }), "invalid uri"),
        (json!({ "method": "GE T" }), "invalid HTTP method"),
        (
            json!({ "headers": { "a b": "c" } }),
            "invalid HTTP header name",
        ),
        (
            json!({ "headers": { "a": "b\nc" } }),
            "failed to parse header value",
        ),
        (json!({ "host": "a\nb" }), "failed to parse header value"),
        (json!({ "reserve": "0s" }), "`reserve` is 0ns"),
        (json!({ "reserve": "1h" }), "up to 600s"),
        (
            json!({ "reserve": "1s", "peek": true }),
            "leave out `peek` or `reserve`",
        ),
    ] {
        let (status, problem) = server.refused("/v1/check", call.clone()).await;
        let detail = problem["detail"].as_str().unwrap();
        assert!(
            status == 422 && detail.contains(expected),
            "{call}: {status} {detail}"
        );
    }
    // The log has no advice about axum.
    let mistakes = server.live.handle().mistakes();
    assert_eq!(mistakes.count(Check::NoPeerAddress), 0);
    for (call, expected) in [
        (json!(["GET", null]), "expected an object"),
        (json!({ "pth": "/" }), "unknown field `pth`"),
        (json!({ "cost": -1 }), "invalid value: integer `-1`"),
        (json!({ "cost": 1.5 }), "invalid type: floating point"),
        (json!({ "address": "localhost" }), "invalid IP address"),
        (json!({ "headers": { "a": [] } }), "an empty list"),
        (json!({ "reserve": "soon" }), "soon"),
    ] {
        let (status, problem) = server.refused("/v1/check", call.clone()).await;
        let detail = problem["detail"].as_str().unwrap();
        assert!(
            status == 400 && detail.contains(expected),
            "{call}: {status} {detail}"
        );
    }
}

#[tokio::test]
async fn token_is_required_of_callers() {
    let mut options = HttpOptions::default();
    options.token = Some("a-token-of-24-characters".parse().unwrap());
    let server = Server::with(RULES, options).await;
    let call = json!({ "address": "192.0.2.1" });
    for path in ["/v1/check", "/v1/check/0/commit", "/json"] {
        assert_eq!(server.refused(path, call.clone()).await.0, 401, "{path}");
        let wrong = server
            .post(path, &call)
            .bearer_auth("another-token-of-24-chars");
        let response = send(wrong).await;
        assert_eq!(
            response.headers()["www-authenticate"],
            "Bearer realm=\"tower-quota\""
        );
    }
    let right = server
        .post("/v1/check", &call)
        .bearer_auth("a-token-of-24-characters");
    assert_eq!(status(right).await, 200);
    assert_eq!(
        status(server.request(reqwest::Method::GET, "/v1/openapi.json")).await,
        200
    );
}

#[tokio::test]
async fn replaced_limits_hold_for_the_next_check() {
    let server = Server::start(RULES).await;
    let call = || json!({ "address": "192.0.2.1" });
    assert_eq!(
        server.call("/v1/check", call()).await["limits"][0]["limit"],
        "minute"
    );
    server
        .replace("limits: [{ name: hour, quota: 1/hour }]")
        .await;
    assert_eq!(
        server.call("/v1/check", call()).await["limits"][0]["limit"],
        "hour"
    );
    assert_eq!(server.call("/v1/check", call()).await["allowed"], false);
}

#[tokio::test]
async fn other_content_types_are_refused() {
    let server = Server::start(RULES).await;
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/jsonp",
    ] {
        let call = server
            .request(reqwest::Method::POST, "/v1/check")
            .body("{}");
        let message = detail(call.header("content-type", kind), 415).await;
        assert!(
            message.contains("Content-Type: application/json"),
            "{message}"
        );
    }
    let call = server
        .request(reqwest::Method::POST, "/v1/check")
        .body("{\"peek\":true,\"path\":\"/\",\"address\":\"::1\"}");
    assert_eq!(
        status(call.header("content-type", "Application/JSON; charset=utf-8")).await,
        200
    );
}

#[tokio::test]
async fn busy_clients_are_listed() {
    let server = Server::start("limits: [{ name: minute, quota: 9/minute }]").await;
    let mut calls = 0;
    // One in 32 requests is counted, at random.
    while server.live.handle().top_busy(TopWindow::Minute).is_empty() {
        server
            .call("/v1/check", json!({ "address": "192.0.2.1" }))
            .await;
        calls += 1;
        assert!(calls < 2_000, "no request was counted");
    }
}
