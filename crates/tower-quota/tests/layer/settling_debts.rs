//! A wrong cost of one request cannot lock a client out for years.

use std::convert::Infallible;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use tower::{Layer, service_fn};
use tower_quota::settle::{Reservation, by_handler};
use tower_quota::{Key, Limit, MemoryStore, Quota, RateLimitHandle};

use crate::shared::{answer_of, policy_of, retry_after, secs, stopped_layer};

const DAY: u64 = 86_400;

/// Sends a request of this cost. Returns the handle, and the seconds that the next request has to wait.
async fn settled(quota: Quota, cost: u64) -> (RateLimitHandle<MemoryStore>, u64) {
    let layer = stopped_layer(policy_of(Limit::new("tokens", quota).settle(by_handler())));
    let service = layer.layer(service_fn(move |request: Request<()>| async move {
        let reservation = request.extensions().get::<Reservation>().unwrap();
        assert!(reservation.settle("tokens", cost));
        Ok::<_, Infallible>(Response::new(Full::<Bytes>::default()))
    }));
    assert_eq!(answer_of(&service).await.status(), 200);
    let refused = answer_of(&service).await;
    assert_eq!(refused.status(), 429);
    (layer.handle(), retry_after(&refused).as_secs())
}

#[tokio::test]
async fn debt_of_one_settlement_is_a_day() {
    let hundred = Quota::per_minute(100);
    for quota in [hundred, hundred.gcra(), hundred.burst(1)] {
        let (_, wait) = settled(quota, u64::MAX).await;
        assert!((DAY..DAY + 60).contains(&wait), "{quota:?}: {wait}");
    }
    for quota in [
        hundred.fixed_window(),
        hundred.sliding_window(),
        hundred.sliding_log(),
    ] {
        let (_, wait) = settled(quota, u64::MAX).await;
        assert!(wait <= 120, "{quota:?}: {wait}");
    }
}

#[tokio::test]
async fn debt_of_one_settlement_is_a_longer_period() {
    let quota = Quota::new(1_000, secs(30 * DAY));
    let (_, wait) = settled(quota, u64::MAX).await;
    assert!((30 * DAY..31 * DAY).contains(&wait), "{wait}");
}

#[tokio::test]
async fn smaller_debt_is_charged_completely() {
    for (quota, cost) in [
        (Quota::new(1_000, secs(30 * DAY)), 1_900),
        (Quota::per_minute(100), 144_000),
    ] {
        let (handle, _) = settled(quota, cost).await;
        let status = handle.peek("tokens", &Key::EVERYONE).await.unwrap();
        assert_eq!(status.debt(), cost - quota.capacity());
    }
}
