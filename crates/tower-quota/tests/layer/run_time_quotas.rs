//! Quotas that depend on the request.

use http::Request;
use tower::{Layer, ServiceExt};
use tower_quota::{
    Limit, MemoryStore, OnStoreFailure, Outcome, Policy, Quota, RateLimitLayer, key,
};

use crate::fixture::{
    Answer, Inner, LastRequest, Limited, ScriptedStore, StoreControl, WITH_X, field, retry_after,
    text,
};
use crate::shared::{
    answer_to, assert_field, assert_no_field, decision_of, millis, per_minute, per_second,
    policy_of, secs,
};

/// Returns a limit of five a minute, fifty for users with `pro`, or the `units` of a header.
fn tiers() -> Limit {
    per_minute("tier", 5)
        .by(key::header("user"))
        .quota_with(|head| {
            if head.headers().contains_key("pro") {
                return Some(Quota::per_hour(50));
            }
            let units = head.headers().get("units")?.to_str().ok()?.parse().ok()?;
            Quota::try_new(units, secs(60)).ok()
        })
}

fn free(user: &str) -> http::request::Builder {
    Request::get("/").header("user", user)
}

fn pro(user: &str) -> http::request::Builder {
    free(user).header("pro", "1")
}

fn with_x(policy: Policy) -> Limited {
    Limited::with(policy, |layer| layer.headers(WITH_X))
}

/// Returns the fields `RateLimit-Policy`, `RateLimit` and `X-RateLimit-Limit`.
fn rate_fields(response: &Answer) -> [String; 3] {
    ["ratelimit-policy", "ratelimit", "x-ratelimit-limit"]
        .map(|name| field(response, name).unwrap_or_default())
}

#[tokio::test]
async fn request_is_counted_by_its_quota() {
    let limited = with_x(policy_of(tiers()));
    for (request, admitted) in [(free as fn(&str) -> _, 5), (pro, 50)] {
        let user = admitted.to_string();
        for _ in 0..admitted {
            assert_eq!(limited.send(request(&user)).await.status(), 200);
        }
        let refused = limited.send(request(&user)).await;
        assert_eq!(refused.status(), 429);
        assert_eq!(
            retry_after(&refused),
            secs(if admitted == 5 { 12 } else { 72 })
        );
    }
}

#[tokio::test]
async fn response_reports_the_chosen_quota() {
    let limited = with_x(policy_of(tiers()));
    assert_eq!(
        rate_fields(&limited.send(free("ann")).await),
        [r#""tier";q=5;w=60"#, r#""tier";r=4;t=48"#, "5"]
    );
    assert_eq!(
        rate_fields(&limited.send(pro("bob")).await),
        [r#""tier";q=50;w=3600"#, r#""tier";r=49;t=3528"#, "50"]
    );
    // The quota of the previous request has no effect.
    assert_eq!(
        rate_fields(&limited.send(free("ann")).await)[0],
        r#""tier";q=5;w=60"#
    );
}

#[tokio::test]
async fn other_limits_keep_their_quotas() {
    let posts = per_minute("posts", 9).when(|head| head.method() == http::Method::POST);
    let limited = with_x(policy_of(per_second("all", 8)).limit(tiers()).limit(posts));
    let expected = r#""all";q=8;w=1, "tier";q=50;w=3600"#;
    assert_eq!(rate_fields(&limited.send(pro("ann")).await)[0], expected);
    assert_eq!(
        rate_fields(&limited.send(free("bob")).await)[0],
        r#""all";q=8;w=1, "tier";q=5;w=60"#
    );
    let post = Request::post("/").header("user", "eve").header("pro", "1");
    assert_eq!(
        rate_fields(&limited.send(post).await)[0],
        format!(r#"{expected}, "posts";q=9;w=60"#)
    );
}

#[tokio::test]
async fn named_client_has_quota_of_its_key() {
    let tier = |key: &[u8]| key.starts_with(b"pro").then(|| Quota::per_minute(50));
    let limit = per_minute("tier", 5)
        .by(key::header("user"))
        .quota_with(move |head| tier(head.headers().get("user")?.as_bytes()))
        .quota_of_key(move |key| tier(key.as_bytes()));
    let layer = RateLimitLayer::new(MemoryStore::new(), policy_of(limit));
    layer
        .layer(Inner::default())
        .oneshot(free("pro_1").body(()).unwrap())
        .await
        .unwrap();
    let status = layer.handle().peek("tier", "pro_1").await.unwrap();
    assert_eq!((status.limit, status.remaining()), (50, 49));
    assert_eq!(layer.handle().peek("tier", "ann").await.unwrap().limit, 5);
}

#[tokio::test]
async fn several_limits_choose_their_quotas() {
    let size = |name: &'static str| {
        per_minute(name, 1).quota_with(move |head| {
            Quota::try_new(
                head.headers().get(name)?.to_str().ok()?.parse().ok()?,
                secs(60),
            )
            .ok()
        })
    };
    let limited = with_x(policy_of(size("a")).limit(size("b")).limit(size("c")));
    let response = limited
        .send(Request::get("/").header("c", "30").header("a", "10"))
        .await;
    assert_eq!(
        rate_fields(&response)[0],
        r#""a";q=10;w=60, "b";q=1;w=60, "c";q=30;w=60"#
    );
    assert_eq!(rate_fields(&response)[2], "1", "b is the tightest limit");
}

#[tokio::test]
async fn cost_above_run_time_quota_is_refused() {
    let limited = with_x(policy_of(tiers().cost(3)));
    assert_eq!(limited.send(free("ann")).await.status(), 200);
    let refused = limited.send(free("bob").header("units", "2")).await;
    assert_eq!(refused.status(), 400);
    assert_no_field(&refused, "retry-after");
    assert_eq!(decision_of(&refused).outcome(), Outcome::Never);
    assert_eq!(rate_fields(&refused)[0], r#""tier";q=2;w=60"#);
    assert!(text(refused).await.contains("can ever admit"));
}

#[tokio::test(start_paused = true)]
async fn run_time_leaky_bucket_makes_requests_wait() {
    let queue = Quota::per_second(2).leaky_bucket().queue(8);
    let limit = Limit::new("l", Quota::per_minute(1).burst(8))
        .quota_with(move |head| head.headers().contains_key("queue").then_some(queue));
    let limited = with_x(policy_of(limit));
    for expected in [0, 500] {
        limited.send(Request::get("/").header("queue", "1")).await;
        assert_eq!(limited.inner.last_seen().unwrap().wait(), millis(expected));
    }
    // A request whose quota is not a leaky bucket does not wait.
    let limit = Limit::new("l", queue).quota_with(|_| Some(Quota::per_minute(1)));
    let limited = with_x(policy_of(limit));
    assert_eq!(limited.get().await.status(), 200);
    assert_eq!(limited.get().await.status(), 429);
}

/// Returns the response of an instance whose store is unavailable.
async fn degraded(policy: Policy, request: http::request::Builder) -> Answer {
    let store = ScriptedStore::new();
    store.fail(true);
    let layer = RateLimitLayer::new(store, policy.on_store_failure(OnStoreFailure::Local))
        .on_refused(|refused| {
            http::Response::builder()
                .status(refused.status())
                .body(refused.detail())
                .unwrap()
        });
    layer
        .headers(WITH_X)
        .layer(Inner::default())
        .oneshot(request.body(()).unwrap())
        .await
        .unwrap()
}

#[tokio::test]
async fn degraded_instance_counts_its_share() {
    for (request, share) in [
        (pro("ann"), "10"),
        (free("ann"), "1"),
        (free("ann").header("units", "20"), "4"),
    ] {
        let response = degraded(policy_of(tiers()).instances(5), request).await;
        assert_eq!(response.status(), 200);
        assert_field(&response, "x-ratelimit-limit", share);
        assert_no_field(&response, "ratelimit-policy");
        assert_field(&response, "x-ratelimit-policy", "degraded");
    }
}

#[tokio::test]
async fn degraded_instance_reports_the_requests_quota() {
    let store = ScriptedStore::new();
    store.fail(true);
    let policy = policy_of(tiers())
        .instances(5)
        .on_store_failure(OnStoreFailure::Local);
    let service = RateLimitLayer::new(store, policy).layer(Inner::default());
    let response = answer_to(&service, pro("ann").body(()).unwrap()).await;
    assert_field(&response, "x-ratelimit-limit", "10");
}

#[tokio::test]
async fn indivisible_run_time_quota_is_unavailable() {
    let yearly = || {
        let rare = Quota::new(1, secs(300 * 86_400));
        per_minute("rare", 5).quota_with(move |_| Some(rare))
    };
    let response = degraded(policy_of(yearly()).instances(2), Request::get("/")).await;
    assert_eq!(response.status(), 503);
    assert_field(&response, "x-ratelimit-policy", "degraded");
    // A limit that allows without the store needs no share.
    let allowing = yearly().on_store_failure(OnStoreFailure::Allow);
    let response = degraded(policy_of(allowing).instances(2), Request::get("/")).await;
    assert_eq!(response.status(), 200);
}

#[cfg(feature = "redis")]
#[tokio::test(flavor = "multi_thread")]
async fn redis_counts_each_client_by_own_quota() {
    let redis = tower_quota_dev::RedisServer::start();
    let options = tower_quota::RedisStore::options().deadline(secs(5));
    let store = options.connect(&redis.url()).await.unwrap();
    // The refill is so slow that no unit returns while the test runs.
    let limit = Limit::new("tier", Quota::new(5, secs(86_400)))
        .by(key::header("user"))
        .quota_with(|head| {
            let units = head.headers().get("units")?.to_str().ok()?.parse().ok()?;
            Quota::try_new(units, secs(86_400)).ok()
        });
    let service = RateLimitLayer::new(store, policy_of(limit)).layer(Inner::default());
    let quotas = [
        ("ann", None, 5),
        ("bob", Some("20"), 20),
        ("eve", Some("1"), 1),
    ];
    // Concurrent requests, so that different quotas of one limit share calls.
    let calls: Vec<_> = (0..90)
        .map(|i| {
            let (user, units, _) = quotas[i % 3];
            let request = units
                .into_iter()
                .fold(free(user), |request, units| request.header("units", units));
            let call = service.clone().oneshot(request.body(()).unwrap());
            tokio::spawn(async move { (user, call.await.unwrap()) })
        })
        .collect();
    let mut admitted = std::collections::HashMap::new();
    for call in calls {
        let (user, response) = call.await.unwrap();
        assert_eq!(field(&response, "x-ratelimit-policy"), None, "not degraded");
        *admitted.entry(user).or_insert(0) += i32::from(response.status() == http::StatusCode::OK);
    }
    for (user, _, expected) in quotas {
        assert_eq!(admitted[user], expected, "{user}");
    }
}
