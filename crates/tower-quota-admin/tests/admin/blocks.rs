//! Blocks and allowances, on two instances behind one Redis.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tower_quota_admin::ProblemKind;
use tower_quota_rules::live::RedisRules;
use tower_quota_testkit::RedisServer;

use crate::server::{Instance, RULES, options, problem};

/// The time within which a change is in force on every instance.
const IN_FORCE: Duration = Duration::from_secs(2);

async fn instance(redis: &RedisServer) -> Instance {
    Instance::with(RedisRules::new(&redis.url(), "test").unwrap(), options()).await
}

/// Asks until the answer is this one.
async fn is_answered(instance: &Instance, key: &str, status: StatusCode) {
    let is_answered = async { while instance.ask(key).await != status {} };
    tokio::time::timeout(IN_FORCE, is_answered).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn block_holds_on_two_instances() {
    let redis = RedisServer::start();
    let (one, other) = (instance(&redis).await, instance(&redis).await);
    let put = one
        .put_rules(RULES)
        .header("If-None-Match", "*")
        .send()
        .await
        .unwrap();
    assert_eq!(put.status(), StatusCode::OK);
    is_answered(&other, "pro_1", StatusCode::OK).await;

    let block = one.block("pro_1").await;
    assert_eq!(one.ask("pro_1").await, StatusCode::FORBIDDEN);
    is_answered(&other, "pro_1", StatusCode::FORBIDDEN).await;
    let listed = other.json("/v1/blocks").await;
    assert_eq!(listed["blocks"][0]["id"], block["id"]);
    assert_eq!(
        (
            &listed["blocks"][0]["reason"],
            &listed["blocks"][0]["author"]
        ),
        (&json!("abuse"), &json!("tests"))
    );
    assert!(!listed.to_string().contains("pro_1"), "{listed}");

    let unblock = other
        .request(Method::DELETE, "/v1/blocks/pro_1")
        .send()
        .await
        .unwrap();
    assert_eq!(unblock.status(), StatusCode::NO_CONTENT);
    is_answered(&one, "pro_1", StatusCode::OK).await;
    problem(
        other
            .request(Method::DELETE, "/v1/blocks/pro_1")
            .send()
            .await
            .unwrap(),
        ProblemKind::NotFound,
    )
    .await;
}

#[tokio::test]
async fn network_is_blocked_and_allowed() {
    let instance = Instance::with_rules().await;
    assert_eq!(instance.block("127.0.0.0/8").await["id"], "127.0.0.0/8");
    assert_eq!(instance.ask("ann").await, StatusCode::FORBIDDEN);

    let allow = json!({ "target": "127.0.0.0/8", "kind": "allow", "seconds": 60 });
    let allowed = instance
        .request(Method::PUT, "/v1/blocks")
        .json(&allow)
        .send()
        .await
        .unwrap();
    assert_eq!(allowed.json::<Value>().await.unwrap()["kind"], "allow");
    for _ in 0..10 {
        assert_eq!(instance.ask("ann").await, StatusCode::OK);
    }
    let removed = instance
        .request(Method::DELETE, "/v1/blocks/127.0.0.0%2F8")
        .send()
        .await
        .unwrap();
    assert_eq!(removed.status(), StatusCode::NO_CONTENT);
    assert_eq!(instance.json("/v1/blocks").await["blocks"], json!([]));
}

#[tokio::test]
async fn impossible_block_is_a_problem() {
    let instance = Instance::with_rules().await;
    for body in [
        json!({ "target": "ann", "seconds": 0 }),
        json!({ "target": "ann", "seconds": 40_000_000 }),
        json!({ "target": "ann", "scope": "cookie x", "seconds": 60 }),
    ] {
        let response = instance
            .request(Method::PUT, "/v1/blocks")
            .json(&body)
            .send()
            .await
            .unwrap();
        problem(response, ProblemKind::InvalidValue).await;
    }
}
