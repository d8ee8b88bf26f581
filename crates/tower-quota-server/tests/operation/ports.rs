//! What each port serves.

use crate::support::{DOCUMENT, Files, Server, TOKEN, call, get, get_with, limits, post, text};

#[test]
fn document_alone_is_served_from_memory() {
    let files = Files::new();
    let rules = files.write("rules.yaml", DOCUMENT);
    let server = Server::start(&["--rules", text(&rules)]);
    let line = &server.line;
    assert!(
        line.contains("rules.yaml (limits: 1), counted in memory"),
        "{line}"
    );
    for path in ["/healthz", "/readyz", "/healthcheck"] {
        assert_eq!(get(server.http(), path).0, 200, "{path}");
    }
    let (status, response) = get(server.http(), "/healthcheck");
    assert!(
        status == 200 && response.ends_with("\r\n\r\nOK"),
        "{response}"
    );
    // Metrics and the admin API have a port of their own.
    assert_eq!(get(server.http(), "/metrics").0, 404);
    let (status, metrics) = get(server.admin(), "/metrics");
    assert!(
        status == 200 && metrics.contains("tower_quota_server_connections"),
        "{metrics}"
    );
    assert_eq!(get(server.admin(), "/v1/rules").0, 404);
}

#[test]
fn admin_api_needs_a_secret() {
    let files = Files::new();
    let rules = files.write("rules.yaml", DOCUMENT);
    let variables = [
        ("TOWER_QUOTA_ADMIN_TOKEN", TOKEN),
        ("PROMETHEUS_ADDR", "127.0.0.1:0"),
    ];
    let server = Server::start_with(&["--rules", text(&rules)], &variables);
    assert!(!server.line.contains(TOKEN), "{}", server.line);
    assert_eq!(get(server.admin(), "/v1/rules").0, 401);
    let token = format!("authorization: Bearer {TOKEN}\r\n");
    let (status, rules) = get_with(server.admin(), "/v1/rules", &token);
    assert!(status == 200 && rules.contains("100/minute"), "{rules}");
    assert_eq!(get(server.admin(), "/metrics").0, 200);
    let (_, metrics) = server.line.split_once(", metrics on ").unwrap();
    let metrics = metrics.split(',').next().unwrap().parse().unwrap();
    assert_eq!(get(metrics, "/metrics").0, 200);
    assert_eq!(get(metrics, "/v1/rules").0, 404);
}

#[test]
fn secret_may_have_the_line_end_of_a_file() {
    let files = Files::new();
    let rules = files.write("rules.yaml", DOCUMENT);
    let secret = format!(" {TOKEN}\n");
    let variables = [
        ("TOWER_QUOTA_ADMIN_TOKEN", secret.as_str()),
        ("TOWER_QUOTA_TOKEN", &secret),
    ];
    let server = Server::start_with(&["--rules", text(&rules)], &variables);
    let bearer = format!("authorization: Bearer {TOKEN}\r\n");
    assert_eq!(get_with(server.admin(), "/v1/rules", &bearer).0, 200);
    let forwarded = "x-forwarded-method: GET\r\nx-forwarded-uri: /\r\nx-forwarded-host: shop\r\nx-forwarded-for: 192.0.2.1\r\n";
    let gateway = format!("{forwarded}tower-quota-token: {TOKEN}\r\n");
    assert_eq!(get_with(server.http(), "/v1/auth", &gateway).0, 204);
}

#[test]
fn absent_path_names_the_flag() {
    let files = Files::new();
    let rules = files.write("rules.yaml", DOCUMENT);
    let shop = files.write("shop.yaml", &limits("shop", 1));
    let documents = Server::start(&["--rules", text(&rules)]);
    let envoy = Server::start(&["--envoy", text(&shop), "--admin-token", TOKEN]);
    for (address, path, flag) in [
        (documents.http(), "/json", "--envoy PATH"),
        (documents.http(), "/metrics", "admin port"),
        (documents.admin(), "/", "--admin-token SECRET"),
        (envoy.http(), "/v1/auth", "--rules PATH"),
        (envoy.http(), "/v1/check", "--rules PATH"),
        (envoy.admin(), "/v1/rules", "--rules PATH"),
    ] {
        let (status, response) = get(address, path);
        assert!(
            status == 404 && response.contains(flag),
            "{path}: {response}"
        );
    }
}

#[tokio::test]
async fn both_kinds_of_limits_are_served() {
    let files = Files::new();
    let rules = files.write("rules.yaml", DOCUMENT);
    files.write("data/ratelimit/config/shop.yaml", &limits("shop", 1));
    let root = files.path("data");
    let variables = [
        ("RUNTIME_ROOT", text(&root)),
        ("RUNTIME_SUBDIRECTORY", "ratelimit"),
    ];
    let server = Server::start_with(&["--rules", text(&rules)], &variables);
    assert!(
        server.line.contains("(domains: 1, limits: 1) and "),
        "{}",
        server.line
    );
    let mut client = server.client().await;
    let mut codes = Vec::new();
    for _ in 0..2 {
        let response = client.should_rate_limit(call("shop", "ann")).await.unwrap();
        codes.push(response.into_inner().overall_code);
    }
    assert_eq!(codes, [1, 2]);
}

#[test]
fn http_doors_decide_by_both_kinds_of_limits() {
    let files = Files::new();
    let rules = files.write(
        "rules.yaml",
        "limits:\n  - { name: once, quota: 1/hour, key: client_ip }\n",
    );
    let shop = files.write("shop.yaml", &limits("shop", 1));
    let server = Server::start(&["--rules", text(&rules), "--envoy", text(&shop)]);
    let forwarded = "x-forwarded-method: GET\r\nx-forwarded-uri: /\r\nx-forwarded-host: shop\r\nx-forwarded-for: 192.0.2.1\r\n";
    let auth = || get_with(server.http(), "/v1/auth", forwarded).0;
    assert_eq!([auth(), auth()], [204, 429]);
    let entry = r#"{"domain":"shop","descriptors":[{"entries":[{"key":"user","value":"ann"}]}]}"#;
    let json = || post(server.http(), "/json", entry).0;
    assert_eq!([json(), json()], [200, 429]);
}
