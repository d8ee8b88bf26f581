//! Calls while Redis answers late.

use tower_quota_dev::{Fault, FaultProxy, RedisServer};
use tower_quota_server::messages::ratelimit::RateLimitRequest;

use crate::support::{Files, Server, call, get, limits, text, until};

const TOKENS: &str = "
domain: shop
descriptors:
  - key: user
    rate_limit: { unit: year, requests_per_unit: 100, post_charge: true }
";

/// Returns a call that reports hits.
fn report(hits: u64) -> RateLimitRequest {
    let mut report = call("shop", "ann");
    report.descriptors[0].hits_addend = Some(hits);
    report
}

/// Returns the number of decisions that have failed in Redis.
fn failed(server: &Server) -> u64 {
    let (_, metrics) = get(server.admin(), "/metrics");
    let lines = metrics.lines();
    let errors = lines.filter(|line| line.starts_with("tower_quota_redis_errors_total{"));
    let counts = errors.filter_map(|line| line.rsplit(' ').next());
    counts.map(|count| count.parse::<u64>().unwrap()).sum()
}

#[tokio::test]
async fn redis_gives_up_before_the_door() {
    let (files, redis) = (Files::new(), RedisServer::start());
    let proxy = FaultProxy::to(redis.port());
    let shop = files.write("shop.yaml", &limits("shop", 100));
    let (url, path) = (proxy.url(), text(&shop));
    let server = Server::start(&["--envoy", path, "--redis", &url, "--deadline", "2s"]);
    let client = server.client().await;
    let users = [
        "ann", "bob", "eve", "joe", "kim", "lea", "max", "pam", "roy", "zoe",
    ];
    let ask = |user: &'static str| {
        let mut client = client.clone();
        tokio::spawn(async move { client.should_rate_limit(call("shop", user)).await })
    };
    // The probes of the health are late too.
    until("Redis answers", || {
        !get(server.admin(), "/readyz").1.contains("\"problem\"")
    })
    .await;
    for user in users {
        ask(user).await.unwrap().unwrap();
    }
    let before = failed(&server);
    proxy.inflict(Fault::Mute);
    for call in users.map(ask) {
        let response = call.await.unwrap().unwrap().into_inner();
        assert_eq!(
            response.statuses[0].duration_until_reset, None,
            "no decision"
        );
    }
    // A store that the door leaves early counts no failure, and keeps the units of an answer that comes just in time.
    let failed = failed(&server) - before;
    assert!(failed >= 10, "{failed}");
}

#[tokio::test]
async fn late_report_stays_charged() {
    let (files, redis) = (Files::new(), RedisServer::start());
    let proxy = FaultProxy::to(redis.port());
    let shop = files.write("shop.yaml", TOKENS);
    let (url, direct) = (proxy.url(), redis.url());
    let (fixed, end) = (["--envoy", text(&shop), "--redis"], ["--drain-delay", "0s"]);
    let flags = [&fixed[..], &[&url, "--deadline", "1s"], &end].concat();
    let server = Server::start(&flags);
    let mut client = server.client().await;
    let mut decided = async |hits| {
        let response = client.should_rate_limit(report(hits)).await.unwrap();
        let status = response.into_inner().statuses.remove(0);
        status.duration_until_reset.map(|_| status.limit_remaining)
    };
    while decided(0).await != Some(100) {}
    proxy.inflict(Fault::Mute);
    assert_eq!(decided(30).await, None);
    proxy.heal();
    while decided(0).await.is_none() {}
    server.signal("TERM");
    assert!(server.wait().await);

    let flags = [&fixed[..], &[&direct, "--deadline", "1m"]].concat();
    let server = Server::start(&flags);
    let mut client = server.client().await;
    let response = client.should_rate_limit(report(0)).await.unwrap();
    assert_eq!(response.into_inner().statuses[0].limit_remaining, 70);
}
