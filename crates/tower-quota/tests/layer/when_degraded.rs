//! Quotas that limits count by while the store is unavailable.

use http::Request;
use tower_quota::{ConfigError, Limit, Outcome, Policy, Quota, RequestHead, key, settle};

use crate::degraded::{Setting, assert_marked, rate_fields, some};
use crate::fixture::{Answer, LastRequest, StoreControl};
use crate::shared::{assert_field, millis, per_minute, policy_of, secs};

/// Returns a policy that counts clients, and in an outage addresses by another quota.
fn with_degraded(quota: Quota) -> Policy {
    let limit = per_minute("minute", 60).by(key::header("k"));
    policy_of(limit.when_degraded(quota, key::header("address"))).instances(6)
}

/// Sends a request of a client from an address.
async fn from(setting: &Setting, client: &str, address: &str) -> Answer {
    let request = Request::get("/").header("k", client);
    setting.send(request.header("address", address)).await
}

#[tokio::test]
async fn degraded_quota_counts_by_own_key() {
    let setting = Setting::unavailable(with_degraded(Quota::per_second(2)));
    for remaining in ["1", "0"] {
        let response = from(&setting, "ann", "a").await;
        assert_eq!(response.status(), 200);
        assert_eq!(
            rate_fields(&response)[..3],
            some(["degraded", "2", remaining])
        );
        assert_marked(&response);
    }
    for client in ["ann", "bob"] {
        let response = from(&setting, client, "a").await;
        assert_eq!(response.status(), 429);
        assert_field(&response, "retry-after", "1");
    }
    assert_eq!(from(&setting, "ann", "b").await.status(), 200);
    setting.clock.advance(millis(500));
    assert_eq!(from(&setting, "ann", "a").await.status(), 200);
    // The store counts by the quota and the key of the limit.
    setting.store.fail(false);
    let response = from(&setting, "ann", "a").await;
    assert_field(&response, "x-ratelimit-remaining", "59");
}

#[tokio::test]
async fn requests_without_degraded_key_share_one_counter() {
    let setting = Setting::unavailable(with_degraded(Quota::per_second(2)));
    let get = || Request::get("/").header("k", "ann");
    assert_eq!(setting.send(get()).await.status(), 200);
    let twice = get().header("address", "a").header("address", "b");
    assert_eq!(setting.send(twice).await.status(), 200);
    assert_eq!(setting.send(get()).await.status(), 429);
    assert_eq!(from(&setting, "ann", "a").await.status(), 200);
}

#[tokio::test]
async fn request_without_own_key_is_refused_in_outage() {
    let setting = Setting::unavailable(with_degraded(Quota::per_second(1)));
    let get = || Request::get("/").header("address", "a");
    assert_eq!(setting.send(get()).await.status(), 400);
    assert!(setting.local.is_empty());
    assert_eq!(from(&setting, "ann", "a").await.status(), 200);
}

#[tokio::test]
async fn refused_request_spends_no_shared_degraded_counter() {
    let other = per_minute("other", 9).by(key::header("other"));
    let policy = with_degraded(Quota::per_second(1)).limit(other);
    let setting = Setting::unavailable(policy);
    // The request lacks the key of the other limit and the address.
    let request = Request::get("/").header("k", "ann");
    assert_eq!(setting.send(request).await.status(), 400);
    assert!(setting.local.is_empty());
}

#[tokio::test]
async fn shadow_with_degraded_quota_refuses_nothing() {
    let limit = per_minute("minute", 1).by(key::header("k")).shadow();
    let limit = limit.when_degraded(Quota::per_second(1), key::header("address"));
    let setting = Setting::unavailable(policy_of(limit));
    for _ in 0..3 {
        assert_eq!(from(&setting, "ann", "a").await.status(), 200);
    }
}

#[tokio::test]
async fn degraded_hold_ends_with_request() {
    let setting = Setting::unavailable(with_degraded(Quota::concurrent(1)));
    let first = from(&setting, "ann", "a").await;
    assert_eq!(first.status(), 200);
    assert_eq!(from(&setting, "bob", "a").await.status(), 429);
    drop(first);
    // The recorded extensions have handles of the requests.
    setting.inner().requests.lock().unwrap().clear();
    assert_eq!(from(&setting, "bob", "a").await.status(), 200);
}

#[tokio::test]
async fn hold_may_degrade_to_rate() {
    let limit = Limit::new("exports", Quota::concurrent(1))
        .by(key::header("k"))
        .longest_hold(secs(900))
        .when_degraded(Quota::per_second(2), key::header("k"));
    let setting = Setting::unavailable(policy_of(limit));
    let running = [
        from(&setting, "ann", "a").await,
        from(&setting, "ann", "a").await,
    ];
    assert!(running.iter().all(|answer| answer.status() == 200));
    assert_eq!(from(&setting, "ann", "a").await.status(), 429);
    drop(running);
    assert_eq!(from(&setting, "ann", "a").await.status(), 429);
    setting.clock.advance(secs(1));
    assert_eq!(from(&setting, "ann", "a").await.status(), 200);
}

#[tokio::test(start_paused = true)]
async fn degraded_leaky_bucket_makes_requests_wait() {
    let setting = Setting::unavailable(with_degraded(Quota::per_second(2).leaky_bucket()));
    from(&setting, "ann", "a").await;
    assert_eq!(from(&setting, "ann", "a").await.status(), 200);
    let seen = setting.inner().last_seen().unwrap();
    assert_eq!(seen.outcome(), Outcome::Wait(millis(500)));
}

#[tokio::test]
async fn changed_degraded_quota_keeps_used_units() {
    let setting = Setting::unavailable(with_degraded(Quota::per_minute(3).fixed_window()));
    for _ in 0..3 {
        assert_eq!(from(&setting, "ann", "a").await.status(), 200);
    }
    let handle = &setting.handle;
    handle.replace_policy(with_degraded(Quota::per_minute(4).fixed_window()));
    assert_eq!(from(&setting, "ann", "a").await.status(), 200);
    assert_eq!(from(&setting, "ann", "a").await.status(), 429);
}

#[tokio::test]
async fn cost_above_degraded_quota_is_unavailable() {
    let limit = per_minute("minute", 60)
        .by(key::header("k"))
        .cost_with(|_| 3);
    let limit = limit.when_degraded(Quota::per_second(2), key::header("address"));
    let setting = Setting::unavailable(policy_of(limit));
    assert_eq!(from(&setting, "ann", "a").await.status(), 503);
}

#[test]
fn unusable_degraded_quota_is_an_error() {
    let limit = || per_minute("minute", 60).by(key::header("k"));
    let check = |limit: Limit| Policy::new().try_limit(limit).map(drop);
    let (two, by) = (Quota::per_second(2), || key::header("address"));
    assert!(check(limit().when_degraded(two, by())).is_ok());
    for wrong in [
        limit().cost(3).when_degraded(two, by()),
        limit()
            .max_wait(secs(1))
            .when_degraded(two.fixed_window(), by()),
        limit()
            .settle(settle::by_handler())
            .when_degraded(Quota::concurrent(2), by()),
    ] {
        assert!(check(wrong).is_err());
    }
    let name = |_: &RequestHead<'_>| Some("a");
    let other = |_: &RequestHead<'_>| Some("b");
    let limit = per_minute("minute", 60).by(key::from_fn("name", name));
    let error = check(limit.when_degraded(two, key::from_fn("name", other)));
    assert!(
        matches!(error, Err(ConfigError::SharedScope(_))),
        "{error:?}"
    );
}
