//! Services with different quotas that share counters in Redis.
#![cfg(feature = "redis")]

use std::time::Duration;

use tower_quota::{Check, Limit, Policy, Quota, RateLimitLayer, RedisStore, RequestHead, key};
use tower_quota_dev::RedisServer;
use tower_quota_dev::record_log;
use tower_quota_testkit::ManualClock;
use tracing::Level;

use crate::fixture::{Client, app, is_silent, proves};
use crate::log::Log;

const FIVE: Quota = Quota::per_minute(5);
const HUNDRED: Quota = Quota::per_minute(100);

/// A server, and the clock of its stores.
struct Redis {
    server: RedisServer,
    clock: ManualClock,
}

impl Redis {
    fn start() -> Self {
        Self {
            server: RedisServer::start(),
            clock: ManualClock::default(),
        }
    }

    async fn store(&self, prefix: &str) -> RedisStore {
        RedisStore::options()
            .deadline(Duration::from_secs(20))
            .clock(self.clock.clone())
            .prefix(prefix)
            .connect(&self.server.url())
            .await
            .unwrap()
    }
}

fn minute(quota: Quota) -> Limit {
    Limit::new("minute", quota).by(key::header("x-api-key"))
}

fn layer(store: &RedisStore, quota: Quota) -> RateLimitLayer<RedisStore> {
    RateLimitLayer::new(store.clone(), Policy::new().limit(minute(quota)))
}

/// Returns a client of another process, which logs no warning.
async fn elsewhere(redis: &Redis) -> Client {
    let store = redis.store("quota").await;
    let layer = layer(&store, HUNDRED).without_check(Check::QuotasInTurn);
    Client::of(app().layer(layer)).await
}

async fn request(client: &mut Client, user: &str) {
    client.get("/", &format!("x-api-key: {user}\r\n")).await;
}

#[tokio::test]
async fn quotas_in_turn_are_reported() {
    let redis = Redis::start();
    let store = redis.store("quota").await;
    let limited = || layer(&store, FIVE);
    proves(Check::QuotasInTurn, 3, limited, async |layer| {
        let mut client = Client::of(app().layer(layer)).await;
        let mut elsewhere = elsewhere(&redis).await;
        for _ in 0..3 {
            request(&mut elsewhere, "ann").await;
            request(&mut client, "ann").await;
            redis.clock.advance(Duration::from_secs(300));
        }
    })
    .await;
}

/// Runs services with these prefixes and quotas for an hour. Returns the warnings.
async fn services(services: &[(&str, Quota)]) -> Vec<String> {
    let (redis, log) = (Redis::start(), Log::default());
    let _guard = record_log(log.clone());
    let mut clients = Vec::new();
    for (prefix, quota) in services {
        let layer = layer(&redis.store(prefix).await, *quota);
        clients.push(Client::of(app().layer(layer)).await);
    }
    for minute in 0..60 {
        // Twice, because the larger buckets are full again within seconds.
        for _ in 0..2 {
            for client in &mut clients {
                request(client, "ann").await;
                request(client, &format!("bob {}", minute % 7)).await;
            }
        }
        clients.reverse();
        redis.clock.advance(Duration::from_secs(60));
    }
    let lines = log.lines().into_iter();
    lines
        .map(|(level, text)| {
            assert_eq!(level, Level::WARN);
            text
        })
        .collect()
}

#[tokio::test]
async fn services_with_one_prefix_are_warned_once() {
    let warnings = services(&[("quota", FIVE), ("quota", HUNDRED)]).await;
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    for text in warnings {
        assert!(text.starts_with("the limit \"minute\": "), "{text}");
    }
}

#[tokio::test]
async fn limit_of_three_services_is_named_once() {
    // Without refusals, because a layer remembers its refusals in real time.
    let three = [20, 50, 100].map(|units| ("quota", Quota::per_minute(units)));
    let warnings = services(&three).await;
    assert_eq!(warnings.len(), 3, "{warnings:?}");
}

#[tokio::test]
async fn services_with_own_prefixes_are_silent() {
    let warnings = services(&[("orders", FIVE), ("users", HUNDRED)]).await;
    assert_eq!(warnings, [""; 0]);
}

#[tokio::test]
async fn deploy_of_new_quota_is_silent() {
    let redis = Redis::start();
    let store = redis.store("quota").await;
    let (before, after) = (Quota::per_day(50), Quota::per_day(70));
    let users: Vec<String> = (0..400).map(|user| user.to_string()).collect();
    // The process before the deploy has a store of its own.
    let old_store = redis.store("quota").await;
    let mut client = Client::of(app().layer(layer(&old_store, before))).await;
    for user in &users {
        request(&mut client, user).await;
    }
    is_silent(layer(&store, after), async |layer| {
        let mut client = Client::of(app().layer(layer)).await;
        for _ in 0..4 {
            for user in &users {
                request(&mut client, user).await;
                redis.clock.advance(Duration::from_secs(1));
            }
        }
    })
    .await;
}

#[tokio::test]
async fn turns_within_ten_minutes_are_silent() {
    turns_are_silent(60, Duration::from_secs(10)).await;
}

#[tokio::test]
async fn quotas_of_single_requests_are_silent() {
    let redis = Redis::start();
    let store = redis.store("quota").await;
    let tier = |head: &RequestHead<'_>| head.headers().contains_key("x-tier").then_some(HUNDRED);
    let policies = [
        Policy::new().limit(minute(FIVE).quota_with(tier)),
        Policy::new().choose([minute(FIVE)], move |head, chosen| {
            chosen.add(0, tier(head));
        }),
    ];
    for policy in policies {
        is_silent(RateLimitLayer::new(store.clone(), policy), async |layer| {
            let mut client = Client::of(app().layer(layer)).await;
            for _ in 0..9 {
                let lines = "x-api-key: ann\r\nx-tier: pro\r\n";
                client.get("/", lines).await;
                request(&mut client, "ann").await;
                redis.clock.advance(Duration::from_secs(300));
            }
        })
        .await;
    }
}

#[tokio::test]
async fn change_in_each_hour_is_silent() {
    turns_are_silent(9, Duration::from_secs(3_600)).await;
}

async fn turns_are_silent(turns: usize, pause: Duration) {
    let redis = Redis::start();
    let store = redis.store("quota").await;
    is_silent(layer(&store, FIVE), async |layer| {
        let mut client = Client::of(app().layer(layer)).await;
        let mut elsewhere = elsewhere(&redis).await;
        for _ in 0..turns {
            request(&mut elsewhere, "ann").await;
            request(&mut client, "ann").await;
            redis.clock.advance(pause);
        }
    })
    .await;
}
