//! Roll-outs: dry runs, percentages, promotion, and their ends.

use reqwest::{Method, Response, StatusCode};
use serde_json::json;
use tower_quota_admin::ProblemKind;

use crate::server::{Instance, RULES, problem};

async fn start(instance: &Instance, query: &str, tag: &str) -> Response {
    let request = instance.request(Method::PUT, &format!("/v1/rules/rollout{query}"));
    let request = request
        .header("Content-Type", "application/yaml")
        .header("If-Match", tag);
    request
        .body(RULES.replace("5/minute", "1/minute"))
        .send()
        .await
        .unwrap()
}

async fn end(instance: &Instance, method: Method, path: &str, tag: &str) -> Response {
    instance
        .request(method, path)
        .header("If-Match", tag)
        .send()
        .await
        .unwrap()
}

#[tokio::test]
async fn dry_run_counts_differences() {
    let instance = Instance::with_rules().await;
    problem(
        instance.get("/v1/rules/rollout").await,
        ProblemKind::NotFound,
    )
    .await;
    assert_eq!(start(&instance, "", "\"1\"").await.status(), StatusCode::OK);
    for _ in 0..3 {
        assert_eq!(instance.ask("ann").await, StatusCode::OK);
    }
    let rollout = instance.json("/v1/rules/rollout").await;
    assert_eq!(
        (&rollout["number"], &rollout["rollout"]),
        (&json!(2), &json!("dry_run"))
    );
    assert_eq!(
        rollout["differences"]["only_candidate_refuses"], 2,
        "{rollout}"
    );
    assert_eq!(
        rollout["all_instances"]["only_candidate_refuses"], 2,
        "{rollout}"
    );
    assert_eq!(rollout["all_instances"]["instances"], 1, "{rollout}");

    let promoted = end(
        &instance,
        Method::POST,
        "/v1/rules/rollout/promote",
        "\"2\"",
    )
    .await;
    assert_eq!(promoted.status(), StatusCode::NO_CONTENT);
    assert_eq!(instance.get("/v1/rules").await.headers()["etag"], "\"2\"");
    // A bucket keeps what was left, as far as it fits.
    assert_eq!(
        (instance.ask("ann").await, instance.ask("ann").await),
        (StatusCode::OK, StatusCode::TOO_MANY_REQUESTS)
    );
}

#[tokio::test]
async fn put_during_rollout_conflicts() {
    let instance = Instance::with_rules().await;
    assert_eq!(
        start(&instance, "?percent=100", "\"1\"").await.status(),
        StatusCode::OK
    );
    assert_eq!(
        (instance.ask("ann").await, instance.ask("ann").await),
        (StatusCode::OK, StatusCode::TOO_MANY_REQUESTS)
    );

    let sample = serde_json::json!({ "headers": { "x-api-key": "ann" } });
    let explained = instance
        .request(Method::POST, "/v1/explain")
        .json(&sample)
        .send()
        .await
        .unwrap();
    let explained: serde_json::Value = explained.json().await.unwrap();
    assert_eq!(explained["left"][0]["capacity"], 1, "{explained}");

    let put = |tag: &str| instance.put_rules(RULES).header("If-Match", tag).send();
    assert_eq!(
        problem(put("\"1\"").await.unwrap(), ProblemKind::Conflict).await["current"],
        2
    );
    problem(put("\"7\"").await.unwrap(), ProblemKind::VersionChanged).await;
    problem(
        end(&instance, Method::DELETE, "/v1/rules/rollout", "\"1\"").await,
        ProblemKind::Conflict,
    )
    .await;
    let abandoned = end(&instance, Method::DELETE, "/v1/rules/rollout", "\"2\"").await;
    assert_eq!(abandoned.status(), StatusCode::NO_CONTENT);
    assert_eq!(put("\"1\"").await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn impossible_percentage_is_a_problem() {
    let instance = Instance::with_rules().await;
    for query in ["?percent=0", "?percent=101", "?percent=many"] {
        problem(
            start(&instance, query, "\"1\"").await,
            ProblemKind::InvalidRequest,
        )
        .await;
    }
    let without_version = instance
        .request(Method::POST, "/v1/rules/rollout/promote")
        .send()
        .await
        .unwrap();
    problem(without_version, ProblemKind::VersionRequired).await;
}
