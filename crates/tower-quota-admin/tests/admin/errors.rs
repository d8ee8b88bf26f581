//! Tests errors without another test, from paths, methods, bodies, timeouts and an unavailable
//! store.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use tower_quota_admin::{AdminOptions, ProblemKind};
use tower_quota_dev::RedisServer;
use tower_quota_live::{FileRules, MemoryRules, RedisRules};

use crate::server::{Instance, RULES, options, problem, send};

#[tokio::test]
async fn unknown_path_and_method_are_problems() {
    let instance = Instance::start().await;
    problem(instance.get("/v1/nothing").await, ProblemKind::NotFound).await;
    let response = send(instance.request(Method::PATCH, "/v1/rules")).await;
    assert_eq!(response.headers()["allow"], "GET,HEAD,PUT");
    problem(response, ProblemKind::MethodNotAllowed).await;
    problem(instance.get("/v1/rules").await, ProblemKind::NotFound).await;
    problem(instance.get("/v1/rules/7").await, ProblemKind::NotFound).await;
    problem(
        instance.get("/v1/rules/seven").await,
        ProblemKind::InvalidRequest,
    )
    .await;
    problem(
        instance.get("/v1/rules/diff").await,
        ProblemKind::InvalidRequest,
    )
    .await;
    problem(
        instance.get("/v1/top?count=0").await,
        ProblemKind::InvalidRequest,
    )
    .await;
}

#[tokio::test]
async fn form_of_a_page_changes_nothing() {
    let instance = Instance::with_rules().await;
    for content_type in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=b",
    ] {
        for (method, path) in [
            (Method::PUT, "/v1/rules"),
            (Method::POST, "/v1/rules/check"),
            (Method::POST, "/v1/rules/rollback"),
            (Method::PUT, "/v1/blocks"),
            (Method::POST, "/v1/clients/grant"),
            (Method::POST, "/v1/explain"),
        ] {
            let request = instance
                .request(method, path)
                .header("Content-Type", content_type)
                .header("If-Match", "*");
            problem(
                send(request.body(RULES)).await,
                ProblemKind::UnsupportedType,
            )
            .await;
        }
    }
}

#[tokio::test]
async fn unreadable_body_is_a_problem() {
    let instance = Instance::with_rules().await;
    let rollback = |body: &'static str| {
        let request = instance
            .request(Method::POST, "/v1/rules/rollback")
            .header("If-Match", "*")
            .header("Content-Type", "application/json");
        request.body(body).send()
    };
    for body in [
        "",
        "{",
        "{\"version\":-1}",
        "{\"version\":1,\"force\":true}",
    ] {
        problem(rollback(body).await.unwrap(), ProblemKind::InvalidRequest).await;
    }
    problem(
        rollback("{\"version\":9}").await.unwrap(),
        ProblemKind::NotFound,
    )
    .await;
    let no_text = instance
        .put_rules("")
        .header("If-Match", "*")
        .body(vec![0xff]);
    problem(send(no_text).await, ProblemKind::InvalidRequest).await;
}

#[tokio::test]
async fn huge_body_is_refused() {
    let instance = Instance::with_rules().await;
    let body = " ".repeat(AdminOptions::LONGEST_BODY + 1);
    problem(
        send(instance.put_rules(&body).header("If-Match", "*")).await,
        ProblemKind::TooLarge,
    )
    .await;
    // Only documents are large.
    let key = json!({ "key": "k".repeat(AdminOptions::LONGEST_JSON) });
    let find = instance.request(Method::POST, "/v1/clients/find");
    let find = send(find.json(&key)).await;
    let refused = problem(find, ProblemKind::TooLarge).await;
    let detail = refused["detail"].as_str().unwrap();
    assert!(detail.contains("65536"), "{detail}");
    let document = instance.put_rules(&format!("{RULES}#{}", " ".repeat(1_000_000)));
    let document = send(document.header("If-Match", "*")).await;
    assert_eq!(document.status(), 200);
}

#[tokio::test]
async fn slow_body_times_out() {
    let instance = Instance::with(
        MemoryRules::new(),
        options().timeout(Duration::from_millis(20)),
    )
    .await;
    let request = instance
        .request(Method::POST, "/v1/rules/check")
        .header("Content-Type", "application/yaml");
    let endless =
        reqwest::Body::wrap_stream(tokio_stream::pending::<Result<Vec<u8>, std::io::Error>>());
    problem(send(request.body(endless)).await, ProblemKind::Timeout).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unavailable_source_is_a_problem() {
    let mut redis = RedisServer::start();
    let url = redis.url();
    let instance = Instance::with(RedisRules::new(&url, "test").unwrap(), options()).await;
    send(instance.put_rules(RULES).header("If-None-Match", "*")).await;
    let tag = instance.tag("/v1/rules").await;
    redis.kill();
    // You can read the active rules, but not change them.
    assert_eq!(instance.get("/v1/rules").await.status(), 200);
    let put = send(instance.put_rules(RULES).header("If-Match", tag)).await;
    let refused = problem(put, ProblemKind::Unavailable).await;
    assert!(!refused.to_string().contains(&url), "{refused}");
    problem(instance.get("/v1/audit").await, ProblemKind::Unavailable).await;
}

#[tokio::test]
async fn read_only_source_is_a_problem() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rules.yaml");
    std::fs::write(&path, RULES).unwrap();
    let instance = Instance::with(FileRules::new(&path).unwrap(), options()).await;
    let tag = instance.tag("/v1/rules").await;
    let rollback = instance
        .request(Method::POST, "/v1/rules/rollback")
        .header("If-Match", &tag)
        .json(&json!({ "version": 1 }));
    for change in [
        instance.put_rules(RULES).header("If-Match", &tag),
        instance.put_rules("limits: [").header("If-Match", "\"7-\""),
        rollback,
    ] {
        let refused = problem(send(change).await, ProblemKind::ReadOnly).await;
        let detail = refused["detail"].as_str().unwrap();
        let fix = format!("file {}: change them there", path.display());
        assert!(detail.contains(&fix), "{detail}");
    }
    let rules = instance.json("/v1/health").await["rules"].take();
    assert_eq!(
        [&rules["is_read_only"], &rules["blocks_are_shared"]],
        [true, false]
    );
}

#[tokio::test]
async fn responses_keep_browsers_out() {
    let instance = Instance::with_rules().await;
    for response in [
        instance.get("/v1/health").await,
        send(instance.anonymous(Method::GET, "/")).await,
    ] {
        let field = |name| {
            response
                .headers()
                .get(name)
                .map(|value: &reqwest::header::HeaderValue| value.to_str().unwrap())
        };
        assert_eq!(field("cache-control"), Some("no-store"));
        assert_eq!(field("x-content-type-options"), Some("nosniff"));
        assert!(
            field("content-security-policy")
                .is_some_and(|policy| policy.starts_with("default-src 'none'"))
        );
        assert_eq!(field("access-control-allow-origin"), None);
    }
}

#[tokio::test]
async fn long_comment_is_a_problem() {
    let instance = Instance::with_rules().await;
    let response = send(
        instance
            .request(Method::POST, "/v1/rules/rollback")
            .header("X-Comment", "x".repeat(1_001))
            .json(&json!({ "version": 1 })),
    )
    .await;
    problem(response, ProblemKind::InvalidRequest).await;
    let block = json!({ "target": "ann", "seconds": 60, "reason": "x".repeat(1_001) });
    let response = send(instance.request(Method::PUT, "/v1/blocks").json(&block)).await;
    problem(response, ProblemKind::InvalidRequest).await;
}

#[tokio::test]
async fn unknown_query_parameter_is_a_problem() {
    let instance = Instance::with_rules().await;
    for path in [
        "/v1/audit?limit=1",
        "/v1/overrides?limit=20",
        "/v1/blocks?count=1&show_key=true",
        "/v1/rules?new=true",
        "/v1/health?verbose",
        "/v1/rules/1?count=1",
    ] {
        let refused = problem(instance.get(path).await, ProblemKind::InvalidRequest).await;
        let (_, name) = path.rsplit_once(['?', '&']).unwrap();
        let name = name.split('=').next().unwrap();
        let detail = refused["detail"].as_str().unwrap();
        assert!(detail.contains(name), "{path}: {detail}");
    }
    let put = instance.request(Method::PUT, "/v1/rules?percent=5");
    let put = put
        .header("If-Match", "*")
        .header("Content-Type", "application/yaml")
        .body("limits: []");
    let put = send(put).await;
    problem(put, ProblemKind::InvalidRequest).await;
    assert_eq!(instance.number().await, 1);
    // Access logs of proxies would contain a reason in the URL.
    let reset = instance.request(Method::POST, "/v1/clients/reset?comment=oops");
    let ann = serde_json::json!({ "limit": "minute", "key": "ann" });
    let reset = send(reset.json(&ann)).await;
    problem(reset, ProblemKind::InvalidRequest).await;
}
