//! Gateways ask, and limits answer.

use reqwest::Method;
use serde_json::Value;
use tower_quota_server::http::{HttpOptions, advice, read_rules};

use crate::server::{Server, detail, send, status};

const RULES: &str = "
limits: [{ name: minute, quota: 2/minute fixed_window }]
routes:
  - match: { method: POST, host: shop.example.com, path: /login, header: { x-plan: free } }
    limits: [{ name: login, quota: 1/hour fixed_window, key: header x-user }]
";

#[tokio::test]
async fn gateway_gets_fields_until_the_limit() {
    let server = Server::start(RULES).await;
    let admitted = send(server.ask("192.0.2.1")).await;
    assert_eq!(admitted.status(), 204);
    assert_eq!(admitted.headers()["ratelimit"], "\"minute\";r=1;t=30");
    assert_eq!(
        admitted.headers()["ratelimit-policy"],
        "\"minute\";q=2;w=60"
    );
    assert_eq!(admitted.text().await.unwrap(), "");
    assert_eq!(
        server.statuses(&["192.0.2.1", "192.0.2.2"]).await,
        [204, 204]
    );

    let refused = send(server.ask("192.0.2.1")).await;
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.headers()["retry-after"], "60");
    assert_eq!(refused.headers()["ratelimit"], "\"minute\";r=0;t=60");
    assert_eq!(
        refused.headers()["content-type"],
        "application/problem+json"
    );
    let problem: Value = refused.json().await.unwrap();
    assert_eq!(problem["violated-policies"][0], "minute");
}

#[tokio::test]
async fn limits_see_the_request_of_the_client() {
    let server = Server::start(RULES).await;
    let login = |user: &str| {
        let ask = server.ask_about("POST", "/login?next=/", "192.0.2.7");
        ask.header("x-plan", "free").header("x-user", user)
    };
    assert_eq!(status(login("ann")).await, 204);
    let second = send(login("ann")).await;
    assert_eq!(second.status(), 429);
    assert_eq!(second.headers()["retry-after"], "3600");
    assert_eq!(status(login("bob")).await, 204);
    // Other methods have another limit.
    let read = server
        .ask_about("GET", "/login", "192.0.2.8")
        .header("x-user", "ann");
    assert_eq!(status(read.header("x-plan", "free")).await, 204);
}

#[tokio::test]
async fn methods_of_the_gateway_are_irrelevant() {
    let server = Server::start("limits: [{ name: minute, quota: 6/minute, key: method }]").await;
    let methods = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PURGE"];
    for method in methods {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let ask = server.request(method.clone(), "/v1/auth");
        let ask = ask
            .header("X-Forwarded-Method", "PATCH")
            .header("X-Forwarded-Uri", "/");
        let ask = ask
            .header("X-Forwarded-Host", "a")
            .header("X-Forwarded-For", "192.0.2.1");
        let expected = if method == "PURGE" { 429 } else { 204 };
        assert_eq!(status(ask).await, expected, "{method}");
    }
}

#[tokio::test]
async fn refused_grpc_calls_are_no_success() {
    let server = Server::start("block: [{ path: /shop.Orders/List }]\nallow_empty: true").await;
    let call = server.ask_about("POST", "/shop.Orders/List", "192.0.2.1");
    let call = call
        .header("content-type", "application/grpc")
        .header("te", "trailers");
    assert_eq!(status(call).await, 403);
}

#[tokio::test]
async fn settling_requests_keep_their_estimate() {
    let rules = "
limits:
  - { name: failures, quota: 2/minute, cost: 2, settle: only_failures }
  - { name: bytes, quota: 100/minute, settle: body_bytes 1 }
";
    let server = Server::start(rules).await;
    assert_eq!(
        server.statuses(&["192.0.2.1", "192.0.2.1"]).await,
        [204, 429]
    );
}

#[test]
fn advice_names_limits_that_gateways_cannot_have() {
    let rules = "
limits:
  - { name: uploads, quota: 2 at once }
  - { name: failures, quota: 2/minute, settle: only_failures }
  - { name: tokens, quota: 9/minute, settle: handler }
";
    let advice = advice(read_rules(rules).unwrap().document());
    assert_eq!(advice.len(), 2, "{advice:?}");
    assert!(advice[0].starts_with("the limit \"uploads\" counts requests in progress"));
    assert!(advice[1].starts_with("the limit \"failures\" settles by only_failures"));
}

#[test]
fn problems_of_documents_have_places() {
    for (rules, line, expected) in [
        ("limits:\n  - { name: a, quota: 1/minut }", 2, "minut"),
        (
            "limits:\n  - { name: a, quota: 1/minute }\n  - { name: a, quota: 1/hour }",
            3,
            "\"a\"",
        ),
        (
            "limits:\n  - { name: a, quota: 2/minute, cost: code size }",
            2,
            "code gives no cost \"size\"",
        ),
    ] {
        let problems = read_rules(rules).unwrap_err();
        let problem = problems.iter().next().unwrap();
        assert_eq!(problem.line, Some(line), "{problem}");
        assert!(problem.message.contains(expected), "{problem}");
    }
    let degraded = "limits: [{ name: a, quota: 2/minute, when_degraded: 1/minute by code user }]";
    assert!(read_rules(degraded).is_ok());
}

#[tokio::test]
async fn replaced_limits_hold_for_the_next_request() {
    let server = Server::start("limits: [{ name: minute, quota: 1/minute }]").await;
    let client = ["192.0.2.1"];
    assert_eq!(server.statuses(&client).await, [204]);
    assert_eq!(server.statuses(&client).await, [429]);
    server
        .replace("limits: [{ name: hour, quota: 3/hour }]")
        .await;
    assert_eq!(
        server.statuses(&["192.0.2.1"; 4]).await,
        [204, 204, 204, 429]
    );
    server
        .replace("block: [{ network: 192.0.2.0/24 }]\nallow_empty: true")
        .await;
    assert_eq!(
        server.statuses(&["192.0.2.1", "198.51.100.1"]).await,
        [403, 204]
    );
}

#[tokio::test]
async fn token_is_required_of_gateways() {
    let mut options = HttpOptions::default();
    options.token = Some("a-token-of-24-characters".parse().unwrap());
    let server = Server::with(
        "limits: [{ name: minute, quota: 9/minute, key: bearer }]",
        options,
    )
    .await;
    let ask = || server.ask("192.0.2.1").bearer_auth("the token of a client");
    for wrong in ["a-token-of-24-characterS", "a", ""] {
        let message = detail(ask().header("Tower-Quota-Token", wrong), 403).await;
        assert!(message.contains("no valid token"), "{message}");
    }
    assert_eq!(
        detail(ask(), 403).await.split(':').next().unwrap(),
        "this gateway has no valid token"
    );
    let token = "a-token-of-24-characters";
    assert_eq!(status(ask().header("Tower-Quota-Token", token)).await, 204);
    let twice = ask()
        .header("Tower-Quota-Token", token)
        .header("Tower-Quota-Token", token);
    assert_eq!(status(twice).await, 403);
}
