//! Tests missing, wrong and right tokens, and floods of wrong tokens.

use std::path::Path;
use std::time::Duration;

use reqwest::{Method, StatusCode};
use tower_quota::{MemoryStore, Policy, RateLimitLayer};
use tower_quota_admin::{AdminError, AdminOptions, Author, ProblemKind, Role, router};
use tower_quota_live::{LiveOptions, LiveRules, MemoryRules, WithoutRules};

use crate::server::{HOLDER, Instance, TOKEN, options, problem, send};

async fn build(options: AdminOptions) -> Option<AdminError> {
    let handle = RateLimitLayer::new(MemoryStore::new(), Policy::new()).handle();
    let live = LiveRules::start(
        handle,
        MemoryRules::new(),
        LiveOptions::new().without_rules(WithoutRules::Refuse),
    )
    .await
    .unwrap();
    router(live, options).err()
}

#[tokio::test]
async fn router_needs_authentication() {
    assert_eq!(
        build(AdminOptions::new()).await,
        Some(AdminError::NoAuthentication)
    );
    assert_eq!(
        build(options().authenticated_by_own_layer()).await,
        Some(AdminError::TwoAuthentications)
    );
    assert_eq!(
        build(AdminOptions::new().authenticated_by_own_layer()).await,
        None
    );
    assert_eq!(build(options()).await, None);
}

#[tokio::test]
async fn weak_token_is_an_error() {
    let short = AdminOptions::new().bearer_token("ann", "fifteen bytes..");
    assert_eq!(
        build(short).await,
        Some(AdminError::ShortToken {
            name: "ann".to_owned(),
            bytes: 15
        })
    );
    assert_eq!(
        build(AdminOptions::new().bearer_token("", TOKEN)).await,
        Some(AdminError::NamelessToken)
    );
}

#[tokio::test]
async fn debug_shows_no_token() {
    let shown = format!("{:?}", options());
    assert!(shown.contains(HOLDER) && !shown.contains(TOKEN), "{shown}");
}

#[tokio::test]
async fn request_without_right_token_is_refused() {
    let instance = Instance::start().await;
    for authorization in [
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        &format!("Basic {TOKEN}"),
        &format!("Bearer {TOKEN}x"),
    ] {
        let request = instance.anonymous(Method::GET, "/v1/health");
        let response = send(request.header("Authorization", authorization)).await;
        assert_eq!(
            response.headers()["www-authenticate"],
            "Bearer realm=\"tower-quota\""
        );
        problem(response, ProblemKind::Unauthenticated).await;
    }
    let twice = instance
        .request(Method::GET, "/v1/health")
        .header("Authorization", "Bearer wrong");
    assert_eq!(send(twice).await.status(), 401);
    assert_eq!(instance.get("/v1/health").await.status(), 200);
}

#[tokio::test]
async fn only_wrong_tokens_are_limited() {
    let instance = Instance::start().await;
    let mut statuses = Vec::new();
    for guess in 0..40 {
        let request = instance
            .anonymous(Method::GET, "/v1/rules")
            .bearer_auth(format!("a wrong token, number {guess}"));
        statuses.push(send(request).await.status());
    }
    let refused = statuses.iter().filter(|status| **status == 401).count();
    assert!((10..=12).contains(&refused), "{refused} guesses");
    assert_eq!(statuses.last(), Some(&StatusCode::TOO_MANY_REQUESTS));
    for _ in 0..40 {
        assert_eq!(instance.get("/v1/health").await.status(), 200);
    }
}

#[tokio::test]
async fn unknown_path_needs_a_token_too() {
    let instance = Instance::start().await;
    let response = send(instance.anonymous(Method::GET, "/nothing")).await;
    problem(response, ProblemKind::Unauthenticated).await;
}

#[tokio::test]
async fn own_layer_names_the_author() {
    let handle = RateLimitLayer::new(MemoryStore::new(), Policy::new()).handle();
    let live = LiveRules::start(
        handle,
        MemoryRules::new(),
        LiveOptions::new().without_rules(WithoutRules::Refuse),
    )
    .await
    .unwrap();
    let admin = router(live, AdminOptions::new().authenticated_by_own_layer()).unwrap();
    let admin = admin.layer(axum::Extension(Author("ann".to_owned())));
    let instance = Instance {
        admin: crate::server::serve(admin).await,
        ..Instance::start().await
    };
    let put = send(
        instance
            .put_rules(crate::server::RULES)
            .header("If-None-Match", "*"),
    )
    .await;
    assert_eq!(
        put.json::<serde_json::Value>().await.unwrap()["author"],
        "ann"
    );
}

#[tokio::test]
async fn role_bounds_what_a_token_may_do() {
    let tokens = options()
        .bearer_token_of_role(Role::Read, "dashboard", "the token to read with")
        .bearer_token_of_role(Role::Operate, "on-call", "the token to operate with");
    let instance = Instance::with(MemoryRules::new(), tokens).await;
    let put = instance.put_rules(crate::server::RULES);
    send(put.header("If-None-Match", "*")).await;
    let client = serde_json::json!({ "limit": "minute", "key": "ann" });
    let ask = async |token: &str, method: Method, path: &str| {
        let request = instance.anonymous(method, path).bearer_auth(token);
        send(request.json(&client)).await
    };
    let (read, operate) = ("the token to read with", "the token to operate with");
    for (token, role, method, path, needed) in [
        (read, "read", Method::GET, "/v1/rules", None),
        (read, "read", Method::POST, "/v1/clients/peek", None),
        (
            read,
            "read",
            Method::POST,
            "/v1/clients/reset",
            Some("operate"),
        ),
        (read, "read", Method::PUT, "/v1/blocks", Some("operate")),
        (read, "read", Method::GET, "/v1/overrides", None),
        (read, "read", Method::PUT, "/v1/overrides", Some("operate")),
        (
            read,
            "read",
            Method::POST,
            "/v1/overrides/remove",
            Some("operate"),
        ),
        (read, "read", Method::PUT, "/v1/rules", Some("rules")),
        (operate, "operate", Method::POST, "/v1/clients/reset", None),
        (
            operate,
            "operate",
            Method::POST,
            "/v1/rules/rollback",
            Some("rules"),
        ),
        (TOKEN, "rules", Method::POST, "/v1/clients/reset", None),
    ] {
        let response = ask(token, method, path).await;
        assert_eq!(response.headers()["tower-quota-role"], role, "{path}");
        let Some(needed) = needed else {
            assert_eq!(response.status(), 200, "{path}");
            continue;
        };
        let body = problem(response, ProblemKind::RoleRequired).await;
        let detail = body["detail"].as_str().unwrap();
        assert!(detail.contains(&format!("`{needed}`")), "{path}: {detail}");
    }
}

#[tokio::test]
async fn own_layer_restricts_by_role() {
    let handle = RateLimitLayer::new(MemoryStore::new(), Policy::new()).handle();
    let admin = router(handle, AdminOptions::new().authenticated_by_own_layer()).unwrap();
    let instance = Instance {
        admin: crate::server::serve(admin.layer(axum::Extension(Role::Read))).await,
        ..Instance::start().await
    };
    assert_eq!(instance.get("/v1/health").await.status(), 200);
    let reset = instance.request(Method::POST, "/v1/clients/reset");
    problem(send(reset).await, ProblemKind::RoleRequired).await;
}

/// Starts an instance with a file of tokens.
async fn with_token_file(path: &Path) -> Instance {
    let options = AdminOptions::new().token_file(path);
    Instance::with(MemoryRules::new(), options).await
}

async fn status_of(instance: &Instance, token: &str, method: Method, path: &str) -> u16 {
    let request = instance.anonymous(method, path).bearer_auth(token);
    send(request).await.status().as_u16()
}

#[tokio::test]
async fn tokens_of_a_file_have_roles() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens");
    let text = format!("# the team\n\ndash:read:{TOKEN}-1\nann:rules:{TOKEN}:2\n");
    std::fs::write(&path, text).unwrap();
    let instance = with_token_file(&path).await;
    for (token, expected) in [("-1", 403), (":2", 428), ("", 401)] {
        let token = format!("{TOKEN}{token}");
        let status = status_of(&instance, &token, Method::PUT, "/v1/rules").await;
        assert_eq!(status, expected, "{token}");
    }
}

#[tokio::test]
async fn changed_token_file_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens");
    let (old, new) = (format!("{TOKEN}-old"), format!("{TOKEN}-new"));
    std::fs::write(&path, format!("ann:read:{old}\n")).unwrap();
    let instance = with_token_file(&path).await;
    let statuses = async || {
        let of = |token| status_of(&instance, token, Method::GET, "/v1/health");
        (of(&old).await, of(&new).await)
    };
    assert_eq!(statuses().await, (200, 401));
    std::fs::write(&path, format!("ann:read:{old}\nann:read:{new}\n")).unwrap();
    assert_eq!(statuses().await, (200, 200));
    std::fs::write(&path, format!("ann:read:{new}\n")).unwrap();
    assert_eq!(statuses().await, (401, 200));
    // A mistake locks nobody out.
    for mistake in [
        "",
        "ann:reed:",
        &format!("ann:read:short\nann:read:{old}\n"),
    ] {
        std::fs::write(&path, mistake).unwrap();
        assert_eq!(statuses().await, (401, 200), "{mistake}");
    }
    std::fs::remove_file(&path).unwrap();
    assert_eq!(statuses().await, (401, 200));
}

/// A pipe without a writer never answers, like a file of a server that is gone.
#[cfg(unix)]
#[tokio::test]
async fn token_file_that_hangs_holds_up_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens");
    std::fs::write(&path, format!("ann:read:{TOKEN}-1\n")).unwrap();
    let instance = with_token_file(&path).await;
    std::fs::remove_file(&path).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.unwrap().success());
    let token = format!("{TOKEN}-1");
    for _ in 0..1_000 {
        let status = status_of(&instance, &token, Method::GET, "/v1/health").await;
        assert_eq!(status, 200);
    }
    // End the read, so that the next one reads the file.
    std::fs::write(&path, format!("ann:read:{TOKEN}-2\n")).unwrap();
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, format!("ann:read:{TOKEN}-3\n")).unwrap();
    let token = format!("{TOKEN}-3");
    let changed =
        async { while status_of(&instance, &token, Method::GET, "/v1/health").await != 200 {} };
    tokio::time::timeout(Duration::from_secs(30), changed)
        .await
        .unwrap();
}

#[tokio::test]
async fn unusable_token_file_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens");
    let options = || AdminOptions::new().token_file(&path);
    let missing = build(options()).await.unwrap().to_string();
    assert!(missing.contains(path.to_str().unwrap()), "{missing}");
    for (text, part) in [
        ("", "no token"),
        (TOKEN, "line 1: write NAME:ROLE:TOKEN"),
        (
            &format!("\nann:admin:{TOKEN}"),
            "line 2: write NAME:ROLE:TOKEN",
        ),
        ("ann:read:short", "\"ann\" has 5 bytes"),
        (&format!(":read:{TOKEN}"), "no name"),
    ] {
        std::fs::write(&path, text).unwrap();
        let error = build(options()).await.unwrap().to_string();
        assert!(error.contains(part), "{part}: {error}");
        assert!(!error.contains(TOKEN), "{error}");
    }
}
