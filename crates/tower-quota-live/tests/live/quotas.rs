//! Tests documents with quotas of requests in progress and of the calendar, counted in Redis.

use std::sync::Arc;

use http::Request;
use tower_quota_dev::RedisServer;
use tower_quota_redis::RedisStore;
use tower_quota_rules::QuotaText;

use crate::fixture::{DAY, Instance, PATIENCE, eventually, redis_rules, yaml};
use crate::redis::announced;

const DOCUMENT: &str = "
defaults: { key: header user }
limits: [{ name: plan, quota: 3/year in Europe/Berlin }]
routes: [{ match: { path: /exports }, limits: [{ name: exports, quota: 2 at once }] }]
";

fn get(path: &str) -> http::request::Builder {
    Request::get(path).header("user", "ann")
}

async fn override_all(instance: &Instance, limit: &str, quota: &str) {
    let client = instance.live.client_target(limit, "ann").unwrap();
    let quota = quota.parse::<QuotaText>().unwrap().into();
    let until = tower_quota_live::Time::now().after(DAY);
    let made = instance
        .live
        .override_quota(limit, &client, quota, until, "ops");
    made.await.unwrap();
}

#[tokio::test]
async fn holds_and_calendar_of_document_count_on_all_instances() {
    let server = RedisServer::start();
    let start = async || {
        // An answer after the deadline would admit a request uncounted.
        let counters = RedisStore::options().deadline(PATIENCE);
        let counters = counters.connect(&server.url()).await.unwrap();
        let rules = Arc::new(redis_rules(&server, "quotas"));
        Instance::counting(counters, rules, announced()).await
    };
    let [one, other] = [start().await, start().await];
    one.put(yaml(DOCUMENT)).await;
    other.until_in_force(1).await;

    let first = one.send(get("/exports")).await;
    let second = other.send(get("/exports")).await;
    assert_eq!(
        (first.status().as_u16(), second.status().as_u16()),
        (200, 200)
    );
    // The refusal leaves the third unit of the year.
    assert_eq!(one.send(get("/exports")).await.status(), 429);
    override_all(&one, "exports", "3 at once ttl 5m").await;
    eventually("a third export runs", async || {
        other.send(get("/exports")).await.status() == 200
    })
    .await;
    drop((first, second));
    assert_eq!(one.send(get("/")).await.status(), 429);
    override_all(&other, "plan", "4/year in Europe/Berlin").await;
    eventually("a fourth request passes", async || {
        one.send(get("/")).await.status() == 200
    })
    .await;
    assert_eq!(other.send(get("/")).await.status(), 429);
}
