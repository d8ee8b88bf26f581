//! Spellings of a path that a service behind the gateway may take for another path.

use serde_json::json;

use crate::server::{Server, status};

const RULES: &str = "
routes:
  - match: { path: /api/login }
    limits: [{ name: login, quota: 1/minute, key: none }]
limits: [{ name: paths, quota: 1/minute, key: path, unless: { path: \"/api/{*rest}\" } }]
skip: [{ path: \"/static/{*rest}\" }]
block: [{ path: /admin }]
";

#[tokio::test]
async fn spellings_of_a_path_are_limited() {
    let spellings = [
        "/api/login",
        "/%61pi/l%6Fgin",
        "//api///login",
        "/./api/x/../login",
        "/api%2Flogin",
        "/%2e%2E/api/%2e/login?a=b",
        "/static/../api/login",
        "/api;v=1/login%3Ba=b",
        "/api/x/..;/login",
    ];
    for spelling in spellings {
        let server = Server::start(RULES).await;
        assert_eq!(
            status(server.ask_about("POST", spelling, "192.0.2.1")).await,
            204
        );
        let second = status(server.ask_about("POST", "/api/login", "192.0.2.1")).await;
        assert_eq!(second, 429, "{spelling}");
        let checked = server.call("/v1/check", json!({ "path": spelling })).await;
        assert_eq!(checked["status"], 429, "{spelling}");
    }
}

#[tokio::test]
async fn spellings_of_a_path_share_a_counter() {
    let server = Server::start(RULES).await;
    for (path, expected) in [
        ("/users/%41nn", 204),
        ("/users//Ann", 429),
        ("/users/Ann/", 204),
        ("/users/Ann/.", 429),
        ("/users/%C3%A4", 204),
        ("/users/%25C3", 204),
        ("/users/%", 204),
        ("/..", 204),
        ("/", 429),
    ] {
        assert_eq!(
            status(server.ask_about("GET", path, "192.0.2.1")).await,
            expected,
            "{path}"
        );
    }
}

#[tokio::test]
async fn expression_matches_case_and_trailing_slash() {
    // The advice of docs/reference/rules.md.
    let rules = "
routes:
  - match: { path: { regex: \"(?i)^/login/?$\" } }
    limits: [{ name: login, quota: 1/minute, key: none }]
limits: [{ name: others, quota: 1/hour, key: path }]
";
    for spelling in ["/login", "/Login", "/login/", "/%6cOGIN/", "//login"] {
        let server = Server::start(rules).await;
        let ask = async |path: &str| status(server.ask_about("POST", path, "192.0.2.1")).await;
        assert_eq!(ask(spelling).await, 204, "{spelling}");
        assert_eq!(ask("/login?again").await, 429, "{spelling}");
        assert_eq!(ask("/login/more").await, 204);
    }
}

#[tokio::test]
async fn exemptions_need_the_plain_path() {
    let server = Server::start(RULES).await;
    for (path, expected) in [
        ("/static/app.js", 204),
        ("/static/app.js", 204),
        ("/static/../admin", 403),
        ("/%61dmin", 403),
        ("/x/../static/app.js", 204),
        ("/x/../static/app.js", 429),
    ] {
        assert_eq!(
            status(server.ask_about("GET", path, "192.0.2.1")).await,
            expected,
            "{path}"
        );
    }
}
