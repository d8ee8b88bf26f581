//! The rules: put, read, conflict, history, diff, rollback.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tower_quota_admin::ProblemKind;

use crate::server::{HOLDER, Instance, RULES, problem};

fn stricter() -> String {
    RULES.replace("5/minute", "2/minute")
}

#[tokio::test]
async fn put_rules_are_in_force() {
    let instance = Instance::with_rules().await;
    let response = instance.get("/v1/rules").await;
    assert_eq!(response.headers()["etag"], "\"1\"");
    assert_eq!(response.headers()["content-type"], "application/yaml");
    assert_eq!(response.text().await.unwrap(), RULES);

    let put = instance
        .put_rules(&stricter())
        .header("If-Match", "\"1\"")
        .header("X-Comment", "load")
        .send()
        .await
        .unwrap();
    assert_eq!(
        (put.status(), &put.headers()["etag"]),
        (StatusCode::OK, &"\"2\"".parse().unwrap())
    );
    let version: Value = put.json().await.unwrap();
    assert_eq!(
        (&version["author"], &version["comment"]),
        (&json!(HOLDER), &json!("load"))
    );

    let mut admitted = 0;
    while instance.ask("ann").await == StatusCode::OK {
        admitted += 1;
    }
    assert_eq!(admitted, 2);
}

#[tokio::test]
async fn known_version_is_not_sent_again() {
    let instance = Instance::with_rules().await;
    let request = instance
        .request(Method::GET, "/v1/rules")
        .header("If-None-Match", "\"1\"");
    assert_eq!(
        request.send().await.unwrap().status(),
        StatusCode::NOT_MODIFIED
    );
}

#[tokio::test]
async fn put_of_old_version_conflicts() {
    let instance = Instance::with_rules().await;
    let put = |tag: &str| {
        instance
            .put_rules(&stricter())
            .header("If-Match", tag)
            .send()
    };
    assert_eq!(put("\"1\"").await.unwrap().status(), StatusCode::OK);
    let lost = problem(put("\"1\"").await.unwrap(), ProblemKind::VersionChanged).await;
    assert_eq!(lost["current"], 2);
    problem(put("W/\"2\"").await.unwrap(), ProblemKind::VersionChanged).await;
    assert_eq!(put("*").await.unwrap().status(), StatusCode::OK);

    problem(
        instance.put_rules(RULES).send().await.unwrap(),
        ProblemKind::VersionRequired,
    )
    .await;
    let first = instance
        .put_rules(RULES)
        .header("If-None-Match", "*")
        .send()
        .await
        .unwrap();
    assert_eq!(
        problem(first, ProblemKind::VersionChanged).await["current"],
        3
    );
}

#[tokio::test]
async fn put_of_rules_without_limits_is_refused() {
    let instance = Instance::with_rules().await;
    let put = async |text: &str| {
        let put = instance.put_rules(text).header("If-Match", "*");
        put.send().await.unwrap()
    };
    for empty in [
        "",
        "# all commented out\n",
        "limits:\n",
        "block: [{ key: ann }]",
    ] {
        let refused = problem(put(empty).await, ProblemKind::InvalidRules).await;
        let reason = refused["problems"][0]["message"].as_str().unwrap();
        assert!(reason.contains("no limit"), "{empty}: {refused}");
    }
    assert_eq!(instance.get("/v1/rules").await.headers()["etag"], "\"1\"");
    assert_eq!(put("allow_empty: true").await.status(), StatusCode::OK);
}

#[tokio::test]
async fn bad_rules_list_every_problem() {
    let instance = Instance::with_rules().await;
    let bad =
        "limits:\n  - { name: minute, quota: 100/minte }\n  - { name: minute, quotas: 5/hour }\n";
    let put = instance
        .put_rules(bad)
        .header("If-Match", "*")
        .send()
        .await
        .unwrap();
    let refused = problem(put, ProblemKind::InvalidRules).await;
    let problems = refused["problems"].as_array().unwrap();
    assert!(problems.len() >= 2, "{refused}");
    assert_eq!(
        (&problems[0]["line"], &problems[0]["path"]),
        (&json!(2), &json!("limits[0].quota"))
    );
    assert_eq!(instance.get("/v1/rules").await.headers()["etag"], "\"1\"");
}

#[tokio::test]
async fn check_reports_and_changes_nothing() {
    let instance = Instance::with_rules().await;
    let check = async |content_type: &str, body: String| -> Value {
        let request = instance
            .request(Method::POST, "/v1/rules/check")
            .header("Content-Type", content_type);
        request
            .body(body)
            .send()
            .await
            .unwrap()
            .json()
            .await
            .unwrap()
    };
    let good = check(
        "application/json",
        json!({ "limits": [{ "name": "a", "quota": "1/hour" }] }).to_string(),
    )
    .await;
    assert_eq!(
        (&good["valid"], &good["tests"]["passed"]),
        (&json!(true), &json!(0))
    );
    let good = check(
        "application/yaml; charset=utf-8",
        "limits: [{ name: a, quota: 1/hour }]".to_owned(),
    )
    .await;
    assert_eq!(good["valid"], true, "{good}");
    let failing = format!("{RULES}tests: [{{ request: {{}}, expect: {{ tier: pro }} }}]");
    let failing = check("application/yaml", failing).await;
    assert_eq!(
        (&failing["valid"], &failing["tests"]["failures"][0]["test"]),
        (&json!(false), &json!(0))
    );
    assert_eq!(instance.get("/v1/rules").await.headers()["etag"], "\"1\"");
}

#[tokio::test]
async fn rollback_is_a_new_version() {
    let instance = Instance::with_rules().await;
    instance
        .put_rules(&stricter())
        .header("If-Match", "\"1\"")
        .send()
        .await
        .unwrap();
    let diff = instance.json("/v1/rules/diff?from=1").await;
    let expected = json!([{ "path": "limits[minute].quota", "change": "changed", "before": "5/minute", "after": "2/minute" }]);
    assert_eq!((&diff["to"], &diff["differences"]), (&json!(2), &expected));

    let rollback = instance
        .request(Method::POST, "/v1/rules/rollback?comment=oops")
        .json(&json!({ "version": 1 }));
    let version: Value = rollback.send().await.unwrap().json().await.unwrap();
    assert_eq!(version["number"], 3);
    assert_eq!(instance.get("/v1/rules").await.text().await.unwrap(), RULES);
    assert_eq!(
        instance.get("/v1/rules/2").await.text().await.unwrap(),
        stricter()
    );

    let history = instance.json("/v1/rules/history?limit=2").await;
    let numbers: Vec<_> = history["versions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|version| &version["number"])
        .collect();
    assert_eq!(numbers, [&json!(3), &json!(2)]);
    assert_eq!(
        history["versions"][0]["comment"],
        "rollback to version 1: oops"
    );
    let audit = instance.json("/v1/audit?limit=1").await;
    let record = &audit["records"][0];
    assert_eq!(
        (&record["who"], &record["what"], &record["comment"]),
        (&json!(HOLDER), &json!("rollback"), &json!("oops"))
    );
    assert_eq!(
        (&record["before"], &record["after"]),
        (&json!("version 2"), &json!("version 3"))
    );
}
