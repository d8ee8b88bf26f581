//! Health checks while files and Redis change.

use std::time::Duration;

use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tower_quota_dev::RedisServer;

use crate::support::{DOCUMENT, Files, Server, call, get, limits, text, until};

#[tokio::test]
async fn outage_of_redis_leaves_server_alive() {
    let (files, redis) = (Files::new(), RedisServer::start());
    let shop = files.write("shop.yaml", &limits("shop", 9));
    let server = Server::start(&["--envoy", text(&shop), "--redis", &redis.url()]);
    let (http, admin) = (server.http(), server.admin());
    let sees = |text: &str| get(admin, "/readyz").1.contains(text);
    until("Redis answers", || !sees("\"problem\"")).await;
    redis.pause();
    until("the outage is visible", || sees("\"problem\"")).await;
    for path in ["/healthz", "/healthcheck", "/readyz"] {
        assert_eq!(get(http, path).0, 200, "{path}");
    }
    let mut client = server.client().await;
    let response = client.should_rate_limit(call("shop", "ann")).await.unwrap();
    assert_eq!(response.into_inner().overall_code, 1);
    redis.resume();
    until("Redis answers again", || !sees("\"problem\"")).await;
}

#[tokio::test]
async fn readiness_may_need_redis() {
    let (files, redis) = (Files::new(), RedisServer::start());
    let shop = files.write("shop.yaml", &limits("shop", 9));
    let flags = ["--envoy", text(&shop), "--redis", &redis.url()];
    let variables = [("REDIS_HEALTH_CHECK_ACTIVE_CONNECTION", "true")];
    let server = Server::start_with(&flags, &variables);
    let http = server.http();
    let ready = || get(http, "/readyz").0;
    until("Redis answers", || ready() == 200).await;
    let watched = HealthCheckRequest::default();
    let mut health = HealthClient::new(server.channel().await);
    let mut statuses = health.watch(watched).await.unwrap().into_inner();
    // The first probe may have failed, because it connects too.
    while statuses.message().await.unwrap().unwrap().status != 1 {}
    redis.pause();
    until("the server is not ready", || ready() == 503).await;
    let (_, report) = get(http, "/readyz");
    let body = r#"{"ready":false,"reasons":["Redis does not answer"]}"#;
    assert!(report.ends_with(body), "{report}");
    let (_, report) = get(server.admin(), "/readyz");
    assert!(report.contains("127.0.0.1:"), "{report}");
    assert_eq!(get(http, "/healthz").0, 200);
    assert_eq!(statuses.message().await.unwrap().unwrap().status, 2);
    redis.resume();
    until("the server is ready again", || ready() == 200).await;
    assert_eq!(statuses.message().await.unwrap().unwrap().status, 1);
}

#[tokio::test]
async fn bad_file_is_visible_and_changes_no_limit() {
    let files = Files::new();
    let shop = files.write("limits/shop.yaml", &limits("shop", 1));
    let server = Server::start(&["--envoy", text(shop.parent().unwrap())]);
    let (http, admin) = (server.http(), server.admin());
    let mut client = server.client().await;
    let mut codes = Vec::new();
    for text in ["domain: [", &limits("shop", 9)] {
        let response = client.should_rate_limit(call("shop", "ann")).await.unwrap();
        codes.push(response.into_inner().overall_code);
        files.write("limits/shop.yaml", text);
        let is_bad = text.contains('[') && !text.contains("descriptors");
        until("the file is read", || {
            get(admin, "/readyz").1.contains("\"problem\"") == is_bad
        })
        .await;
    }
    assert_eq!(codes, [1, 2]);
    assert_eq!(get(http, "/readyz").0, 200);
    let (_, metrics) = get(admin, "/metrics");
    assert!(
        metrics.contains("\nratelimit_service_config_load_success 2\n"),
        "{metrics}"
    );
    assert!(
        metrics.contains("\nratelimit_service_config_load_error 1\n"),
        "{metrics}"
    );
}

#[tokio::test]
async fn server_without_limits_is_not_ready() {
    for (variable, healthcheck) in [
        ("NONE", 200),
        ("HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED", 500),
    ] {
        let files = Files::new();
        let folder = files.path("limits");
        let variables = [
            ("FORCE_START_WITHOUT_INITIAL_CONFIG", "true"),
            (variable, "true"),
        ];
        let server = Server::start_with(&["--envoy", text(&folder)], &variables);
        assert!(
            server.line.contains("limits (no limits yet)"),
            "{}",
            server.line
        );
        let http = server.http();
        let (status, report) = get(http, "/readyz");
        assert_eq!(status, 503);
        let body = r#"{"ready":false,"reasons":["Envoy has no limits yet"]}"#;
        assert!(report.ends_with(body), "{report}");
        let (status, report) = get(server.admin(), "/readyz");
        assert_eq!(status, 503);
        assert!(
            report.contains(text(&folder)) && report.contains("check the path"),
            "{report}"
        );
        assert_eq!(get(http, "/healthcheck").0, healthcheck);
        assert_eq!(get(http, "/healthz").0, 200);
        files.write("limits/shop.yaml", &limits("shop", 1));
        until("the limits are loaded", || get(http, "/readyz").0 == 200).await;
        assert_eq!(get(http, "/healthcheck").0, 200);
    }
}

#[tokio::test]
async fn server_is_not_ready_before_xds_limits() {
    for (force, healthcheck) in [("false", 500), ("true", 200)] {
        let variables = [
            ("CONFIG_TYPE", "GRPC_XDS_SOTW"),
            ("CONFIG_GRPC_XDS_SERVER_URL", "127.0.0.1:1"),
            ("FORCE_START_WITHOUT_INITIAL_CONFIG", force),
        ];
        let server = Server::start_with(&[], &variables);
        assert!(
            server
                .line
                .contains("the xDS server 127.0.0.1:1 (no limits yet)"),
            "{}",
            server.line
        );
        let http = server.http();
        until("the outage is visible", || {
            get(server.admin(), "/readyz")
                .1
                .contains("is the xDS server up?")
        })
        .await;
        assert_eq!(get(http, "/readyz").0, 503);
        assert_eq!(get(http, "/healthcheck").0, healthcheck);
        assert_eq!(get(http, "/healthz").0, 200);
    }
}

#[test]
fn public_port_names_no_path() {
    let files = Files::new();
    let rules = files.write("rules.yaml", DOCUMENT);
    let server = Server::start(&["--rules", text(&rules)]);
    let (status, report) = get(server.http(), "/readyz");
    assert!(
        status == 200 && report.ends_with(r#"{"ready":true,"reasons":[]}"#),
        "{report}"
    );
    let (status, report) = get(server.admin(), "/readyz");
    assert!(status == 200 && report.contains(text(&rules)), "{report}");
}

#[tokio::test]
async fn refused_client_stays_refused_while_redis_hangs() {
    let (files, redis) = (Files::new(), RedisServer::start());
    let shop = files.write("shop.yaml", &limits("shop", 1));
    let redis_url = redis.url();
    let flags = [
        "--envoy",
        text(&shop),
        "--redis",
        &redis_url,
        "--deadline",
        "200ms",
        "--ready-with-redis",
    ];
    let server = Server::start(&flags);
    let mut client = server.client().await;
    let mut code = async || {
        let response = client.should_rate_limit(call("shop", "ann")).await;
        response.unwrap().into_inner().overall_code
    };
    while code().await != 2 {}
    redis.pause();
    let mut ticks = tokio::time::interval(Duration::from_millis(20));
    let mut admitted = 0;
    while get(server.http(), "/readyz").0 == 200 {
        ticks.tick().await;
        admitted += u32::from(code().await == 1);
    }
    assert_eq!(admitted, 0);
}
