//! Tests the counts, the promotion and the removal of shadow documents.

use reqwest::{Method, Response};
use tower_quota_admin::ProblemKind;

use crate::server::{Instance, RULES, problem, send};

async fn start(instance: &Instance, query: &str, tag: &str) -> Response {
    let request = instance.request(Method::PUT, &format!("/v1/rules{query}"));
    let request = request
        .header("Content-Type", "application/yaml")
        .header("If-Match", tag);
    send(request.body(RULES.replace("5/minute", "1/minute"))).await
}

async fn end(instance: &Instance, method: Method, path: &str, tag: &str) -> Response {
    send(instance.request(method, path).header("If-Match", tag)).await
}

#[tokio::test]
async fn shadow_counts_differences() {
    let instance = Instance::with_rules().await;
    problem(
        instance.get("/v1/rules/shadow").await,
        ProblemKind::NotFound,
    )
    .await;
    let tag = instance.tag("/v1/rules").await;
    assert_eq!(start(&instance, "?shadow=true", &tag).await.status(), 200);
    for _ in 0..3 {
        assert_eq!(instance.ask("ann").await, 200);
    }
    let shadow = instance.json("/v1/rules/shadow").await;
    assert_eq!(shadow["number"], 2);
    assert_eq!(shadow["differences"]["only_shadow_refuses"], 2, "{shadow}");
    assert_eq!(
        shadow["all_instances"]["only_shadow_refuses"], 2,
        "{shadow}"
    );
    assert_eq!(shadow["all_instances"]["instances"], 1, "{shadow}");

    let promoted = end(
        &instance,
        Method::POST,
        "/v1/rules/shadow/promote",
        &instance.tag("/v1/rules/shadow").await,
    )
    .await;
    assert_eq!(promoted.status(), 204);
    assert_eq!(instance.number().await, 2);
    // A bucket keeps the remaining units, up to the new capacity.
    assert_eq!(instance.ask("ann").await, 200);
    assert_eq!(instance.ask("ann").await, 429);
}

#[tokio::test]
async fn put_during_shadow_conflicts() {
    let instance = Instance::with_rules().await;
    let tag = instance.tag("/v1/rules").await;
    assert_eq!(start(&instance, "?shadow=true", &tag).await.status(), 200);
    let put = |tag: &str| instance.put_rules(RULES).header("If-Match", tag).send();
    assert_eq!(
        problem(put(&tag).await.unwrap(), ProblemKind::Conflict).await["current"],
        2
    );
    problem(put("\"7\"").await.unwrap(), ProblemKind::VersionChanged).await;
    problem(
        end(&instance, Method::DELETE, "/v1/rules/shadow", &tag).await,
        ProblemKind::Conflict,
    )
    .await;
    let shadow = instance.tag("/v1/rules/shadow").await;
    let abandoned = end(&instance, Method::DELETE, "/v1/rules/shadow", &shadow).await;
    assert_eq!(abandoned.status(), 204);
    assert_eq!(put(&tag).await.unwrap().status(), 200);
}

#[tokio::test]
async fn percentage_is_a_problem() {
    let instance = Instance::with_rules().await;
    for query in ["?percent=5", "?shadow=true&percent=5", "?shadow=maybe"] {
        problem(
            start(&instance, query, "*").await,
            ProblemKind::InvalidRequest,
        )
        .await;
    }
    let without_version = send(instance.request(Method::POST, "/v1/rules/shadow/promote")).await;
    problem(without_version, ProblemKind::VersionRequired).await;
}

#[tokio::test]
async fn rollback_during_shadow_conflicts() {
    let instance = Instance::with_rules().await;
    let tag = instance.tag("/v1/rules").await;
    start(&instance, "?shadow=true", &tag).await;
    let rollback = |tag: String| {
        let request = instance.request(Method::POST, "/v1/rules/rollback");
        request
            .header("If-Match", tag)
            .json(&serde_json::json!({ "version": 1 }))
            .send()
    };
    let refused = rollback(tag).await.unwrap();
    assert_eq!(problem(refused, ProblemKind::Conflict).await["current"], 2);
    let shadow = instance.tag("/v1/rules/shadow").await;
    assert_eq!(rollback(shadow).await.unwrap().status(), 200);
    let audit = instance.json("/v1/audit?count=2").await;
    let [rollback, abandon] = [&audit["records"][0], &audit["records"][1]];
    assert_eq!(
        (&rollback["what"], &abandon["what"], &abandon["before"]),
        (&"rollback".into(), &"abandon".into(), &"version 2".into())
    );
}
