//! Quotas of single clients over all other quotas.

use http::{Request, StatusCode};
use tower::{Layer, ServiceExt};
use tower_quota::{HandleError, Limit, MemoryStore, Policy, Quota, RateLimitLayer, key};

use crate::fixture::Inner;
use crate::shared::{answer_to, per_minute, policy_of, secs};

/// Ann has 3 a year of the limit `year`; a header picks what the others have.
fn layer() -> RateLimitLayer<MemoryStore> {
    let year = Limit::new("year", Quota::per_year(1)).by(key::header("user"));
    let policy = Policy::new()
        .choose([year], |head, chosen| match head.headers().get("tier") {
            Some(tier) if tier == "free" => chosen.leave_out(0),
            Some(_) => chosen.add(0, Some(Quota::per_year(2))),
            None => chosen.add(0, None),
        })
        .overrides(|limit, key, usual| {
            let more = usual.map_or(3, |usual| usual.units().max(3));
            (limit.as_str() == "year" && key.as_bytes() == b"ann").then(|| Quota::per_year(more))
        });
    RateLimitLayer::new(MemoryStore::new(), policy)
}

async fn admitted(user: &str, tier: Option<&str>) -> usize {
    let service = layer().layer(Inner::default());
    let mut admitted = 0;
    for _ in 0..5 {
        let mut request = Request::get("/").header("user", user);
        if let Some(tier) = tier {
            request = request.header("tier", tier);
        }
        let answer = service.clone().oneshot(request.body(()).unwrap());
        admitted += usize::from(answer.await.unwrap().status() == StatusCode::OK);
    }
    admitted
}

#[tokio::test]
async fn override_precedes_other_quotas() {
    for (tier, others) in [(None, 1), (Some("pro"), 2), (Some("free"), 5)] {
        assert_eq!(admitted("ann", tier).await, 3, "{tier:?}");
        assert_eq!(admitted("bob", tier).await, others, "{tier:?}");
    }
}

#[tokio::test]
async fn operator_sees_the_override() {
    let handle = layer().handle();
    assert_eq!(handle.peek("year", "ann").await.unwrap().limit, 3);
    assert_eq!(handle.peek("year", "bob").await.unwrap().limit, 1);
}

#[tokio::test]
async fn client_without_key_is_left_out() {
    let service = layer().layer(Inner::default());
    let request = Request::get("/").header("tier", "free").body(()).unwrap();
    assert_eq!(answer_to(&service, request).await.status(), 200);
}

#[tokio::test]
async fn second_closure_precedes_the_first() {
    let policy = policy_of(Limit::new("year", Quota::per_year(1)).by(key::header("user")))
        .overrides(|_, key, _| (key.as_bytes() != b"bob").then(|| Quota::per_year(2)))
        .overrides(|_, key, usual| match (key.as_bytes(), usual) {
            (b"ann", Some(usual)) => usual.try_raised(3).ok(),
            _ => None,
        });
    let handle = RateLimitLayer::new(MemoryStore::new(), policy).handle();
    for (user, units) in [("ann", 5), ("bob", 1), ("eve", 2)] {
        let quota = handle.quota("year", user).unwrap();
        assert_eq!(quota.capacity(), units, "{user}");
        assert_eq!(handle.peek("year", user).await.unwrap().limit, units);
    }
}

#[test]
fn quota_that_limit_cannot_take_is_named() {
    let policy = Policy::new()
        .instances(2)
        .limit(per_minute("slow", 5).cost(3).max_wait(secs(1)))
        .limit(Limit::new("streams", Quota::concurrent(2)).by(key::header("user")));
    let handle = RateLimitLayer::new(MemoryStore::new(), policy).handle();
    let scope = handle.check_quota("streams", Quota::concurrent(9)).unwrap();
    assert_eq!(scope.as_str(), "header user");
    for (limit, quota) in [
        ("slow", Quota::per_minute(2)),
        ("slow", Quota::per_minute(5).fixed_window()),
        ("slow", Quota::per_year(1).burst(3)),
        ("streams", Quota::per_minute(9)),
    ] {
        let error = handle.check_quota(limit, quota).unwrap_err();
        assert!(matches!(error, HandleError::InvalidQuota(..)), "{quota:?}");
        assert!(error.to_string().contains(limit), "{error}");
    }
    let unknown = handle.check_quota("fast", Quota::per_minute(2));
    assert!(matches!(unknown, Err(HandleError::UnknownLimit { .. })));
}
