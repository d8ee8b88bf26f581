//! Refusals by the references that clients were given.

use reqwest::StatusCode;
use serde_json::json;
use tower_quota_admin::ProblemKind;

use crate::server::{Instance, problem};

#[tokio::test]
async fn reference_finds_the_refusal() {
    let instance = Instance::with_rules().await;
    for _ in 0..5 {
        instance.ask("ann").await;
    }
    let refused = instance
        .client
        .get(&instance.service)
        .header("x-api-key", "ann")
        .send()
        .await
        .unwrap();
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    let reference = refused.headers()["x-ratelimit-reference"]
        .to_str()
        .unwrap()
        .to_owned();

    let found = instance.json(&format!("/v1/refusals/{reference}")).await;
    assert_eq!(
        (&found["reference"], &found["instance"]),
        (&json!(reference), &json!("pod-7"))
    );
    assert_eq!(
        (
            &found["reason"],
            &found["rules_version"],
            &found["degraded"]
        ),
        (&json!("refused"), &json!(1), &json!(false))
    );
    let status = &found["status"];
    assert_eq!(
        (&status["limit"], &status["capacity"], &status["remaining"]),
        (&json!("minute"), &json!(5), &json!(0))
    );
    assert!(
        status["retry_after_ms"]
            .as_u64()
            .is_some_and(|wait| wait > 0),
        "{found}"
    );
    assert!(
        found["at"].as_str().is_some_and(|at| at.ends_with('Z')),
        "{found}"
    );
    // The same hash as in lists and blocks, and not the key.
    assert_eq!(
        (&found["scope"], &found["hash"]),
        (
            &json!("header x-api-key"),
            &instance.block("ann").await["id"]
        )
    );
    assert!(!found.to_string().contains("ann"), "{found}");

    let blocked = instance
        .client
        .get(&instance.service)
        .header("x-api-key", "ann")
        .send()
        .await
        .unwrap();
    let reference = blocked.headers()["x-ratelimit-reference"]
        .to_str()
        .unwrap()
        .to_owned();
    let found = instance.json(&format!("/v1/refusals/{reference}")).await;
    assert_eq!(
        (&found["reason"], found.get("status"), found.get("hash")),
        (&json!("blocked"), None, None)
    );
}

#[tokio::test]
async fn unknown_reference_is_not_found() {
    let instance = Instance::with_rules().await;
    let missing = problem(
        instance.get("/v1/refusals/pod-8-0d3kz5xq8w1fe").await,
        ProblemKind::NotFound,
    )
    .await;
    let detail = missing["detail"].as_str().unwrap();
    assert!(
        detail.contains("pod-8") && detail.contains("an hour"),
        "{detail}"
    );
    problem(instance.get("/v1/refusals/x").await, ProblemKind::NotFound).await;
    problem(
        instance
            .get("/v1/refusals/pod-8-0d3kz5xq8w1fe?show_keys=true")
            .await,
        ProblemKind::KeysHidden,
    )
    .await;
}
