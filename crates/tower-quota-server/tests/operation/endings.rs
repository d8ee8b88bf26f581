//! Signals while calls run.

use std::io::{Read, Write};
use std::net::TcpStream;

use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tower_quota_dev::RedisServer;

use crate::support::{Files, Server, call, get, limits, post, text, until};

#[tokio::test]
async fn readiness_fails_before_the_ports_end() {
    let files = Files::new();
    let shop = files.write("shop.yaml", &limits("shop", 9));
    let server = Server::start(&["--envoy", text(&shop), "--drain-delay", "1h"]);
    let mut health = HealthClient::new(server.channel().await);
    server.signal("TERM");
    let http = server.http();
    until("the server is not ready", || get(http, "/readyz").0 == 503).await;
    let (_, report) = get(http, "/readyz");
    assert!(report.contains("the server is ending"), "{report}");
    assert_eq!(get(http, "/healthcheck").0, 500);
    assert_eq!(get(http, "/healthz").0, 200);
    let status = health.check(HealthCheckRequest::default()).await.unwrap();
    assert_eq!(status.into_inner().status, 2);
    // New connections still get decisions.
    let mut client = server.client().await;
    let response = client.should_rate_limit(call("shop", "ann")).await.unwrap();
    assert_eq!(response.into_inner().overall_code, 1);
}

#[tokio::test]
async fn running_call_is_answered_after_the_signal() {
    let (files, redis) = (Files::new(), RedisServer::start());
    let shop = files.write("shop.yaml", &limits("shop", 9));
    let redis_url = redis.url();
    let flags = [
        "--envoy",
        text(&shop),
        "--redis",
        &redis_url,
        "--deadline",
        "1m",
        "--drain-delay",
        "0s",
    ];
    let server = Server::start(&flags);
    let mut client = server.client().await;
    client.should_rate_limit(call("shop", "ann")).await.unwrap();
    redis.pause();
    let running = tokio::spawn(async move { client.should_rate_limit(call("shop", "ann")).await });
    let (http, admin) = (server.http(), server.admin());
    let running_calls = "tower_quota_redis_calls_in_flight{store=\"redis\"} 0";
    until("the call runs", || {
        !get(admin, "/metrics").1.contains(running_calls)
    })
    .await;
    server.signal("TERM");
    until("the port has ended", || {
        crate::support::try_get(http, "/healthz", "").is_err()
    })
    .await;
    redis.resume();
    let response = running.await.unwrap().unwrap().into_inner();
    assert_eq!(response.statuses[0].limit_remaining, 7);
    assert!(server.wait().await);
}

#[tokio::test]
async fn client_that_stays_cannot_keep_the_server() {
    let files = Files::new();
    let shop = files.write("shop.yaml", &limits("shop", 9));
    let flags = [
        "--envoy",
        text(&shop),
        "--drain-delay",
        "0s",
        "--drain",
        "300ms",
    ];
    let server = Server::start(&flags);
    let mut health = HealthClient::new(server.channel().await);
    let watched = HealthCheckRequest::default();
    let statuses = health.watch(watched).await.unwrap().into_inner();
    server.signal("INT");
    assert!(server.wait().await);
    drop(statuses);
}

#[tokio::test]
async fn leased_units_come_back_at_the_end() {
    let (files, redis) = (Files::new(), RedisServer::start());
    let shop = files.write("shop.yaml", &limits("shop", 100_000));
    let redis_url = redis.url();
    let flags = [
        "--envoy",
        text(&shop),
        "--redis",
        &redis_url,
        "--lease=5s",
        "--deadline",
        "1m",
        "--drain-delay",
        "0s",
    ];
    let mut remaining = 0;
    for _ in 0..2 {
        let server = Server::start(&flags);
        let mut client = server.client().await;
        for _ in 0..100 {
            let response = client.should_rate_limit(call("shop", "ann")).await.unwrap();
            remaining = response.into_inner().statuses[0].limit_remaining;
        }
        let (_, metrics) = get(server.admin(), "/metrics");
        let held = "tower_quota_lease_held_units{store=\"leases\"} 0\n";
        assert!(
            !metrics.contains(held) && metrics.contains("_lease_held_units{"),
            "{metrics}"
        );
        drop(client);
        server.signal("TERM");
        assert!(server.wait().await);
    }
    let server = Server::start(&flags);
    let mut client = server.client().await;
    let response = client.should_rate_limit(call("shop", "ann")).await.unwrap();
    let after = response.into_inner().statuses[0].limit_remaining;
    assert_eq!((remaining, after), (99_800, 99_799));
}

#[tokio::test]
async fn open_reservations_come_back_at_the_end() {
    let (files, redis) = (Files::new(), RedisServer::start());
    let rules =
        "limits: [{ name: tokens, quota: 1000/hour fixed_window, key: none, settle: handler }]";
    let rules = files.write("rules.yaml", rules);
    let redis_url = redis.url();
    let flags = [
        "--rules",
        text(&rules),
        "--redis",
        &redis_url,
        "--deadline",
        "1m",
        "--drain-delay",
        "0s",
        "--drain",
        "300ms",
    ];
    let check = "/v1/check";
    for is_stuck in [false, true] {
        let server = Server::start(&flags);
        let (_, answer) = post(server.http(), check, r#"{ "cost": 600, "reserve": "5m" }"#);
        assert!(answer.contains("\"remaining\":400"), "{answer}");
        let mut stuck = TcpStream::connect(server.http()).unwrap();
        if is_stuck {
            // The server waits for the body, and the drain for the answer.
            let head = "POST /v1/check HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n\
                expect: 100-continue\r\ncontent-length: 9\r\n\r\n";
            stuck.write_all(head.as_bytes()).unwrap();
            stuck.read_exact(&mut [0; 25]).unwrap();
        }
        server.signal("TERM");
        assert!(server.wait().await);
        let server = Server::start(&flags);
        let (_, answer) = post(server.http(), check, r#"{ "peek": true }"#);
        assert!(answer.contains("\"remaining\":1000"), "{is_stuck} {answer}");
    }
}
