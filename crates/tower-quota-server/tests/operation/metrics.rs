//! Metrics by the names of envoyproxy/ratelimit.

use crate::support::{Files, Server, call, get, limits, text};

#[tokio::test]
async fn calls_are_counted_and_timed() {
    let files = Files::new();
    let shop = files.write("shop.yaml", &limits("shop", 1));
    let server = Server::start(&["--envoy", text(&shop)]);
    let mut client = server.client().await;
    for _ in 0..3 {
        client.should_rate_limit(call("shop", "ann")).await.unwrap();
    }
    client.should_rate_limit(call("", "ann")).await.unwrap_err();
    let (_, metrics) = get(server.admin(), "/metrics");
    for line in [
        "ratelimit_service_total_requests{grpc_method=\"ShouldRateLimit\"} 4",
        "ratelimit_service_response_time_seconds_count{grpc_method=\"ShouldRateLimit\"} 4",
        "ratelimit_service_should_rate_limit_error{err_type=\"service_error\"} 1",
        "ratelimit_service_should_rate_limit_error{err_type=\"redis_error\"} 0",
        "ratelimit_service_config_load_success 1",
        "tower_quota_server_connections{port=\"grpc\"} 1",
    ] {
        assert!(
            metrics.contains(&format!("\n{line}\n")),
            "{line}: {metrics}"
        );
    }
}
