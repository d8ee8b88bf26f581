//! Holds of requests that never end.

use std::convert::Infallible;
use std::time::Duration;

use http::{Request, Response};
use tower::{Layer, ServiceExt, service_fn};
use tower_quota::{ConfigError, Key, Limit, MemoryStore, Policy, Quota, RateLimitLayer};
use tower_quota_dev::record_log;
use tower_quota_testkit::ManualClock;

use crate::log::Log;

const SECOND: Duration = Duration::from_secs(1);
const TWO: Quota = Quota::concurrent(2).ttl(Duration::from_secs(3));

#[tokio::test(start_paused = true)]
async fn stalled_requests_return_their_units() {
    let log = Log::default();
    let _guard = record_log(log.clone());
    let clock = ManualClock::default();
    let store = MemoryStore::with_clock(100, clock.clone());
    let limit = Limit::new("streams", TWO).longest_hold(SECOND * 9);
    let layer = RateLimitLayer::new(store, Policy::new().limit(limit));
    let never =
        service_fn(|_: Request<()>| std::future::pending::<Result<Response<String>, Infallible>>());
    let (handle, service) = (layer.handle(), layer.layer(never));
    let stalled: Vec<_> = (0..2)
        .map(|_| tokio::spawn(service.clone().oneshot(Request::new(()))))
        .collect();
    let mut left = Vec::new();
    for _ in 0..12 {
        for _ in 0..8 {
            tokio::task::yield_now().await;
        }
        let status = handle.peek("streams", &Key::EVERYONE).await;
        left.push(status.unwrap().remaining());
        clock.advance(SECOND);
        tokio::time::advance(SECOND).await;
    }
    assert_eq!(left, [0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 2]);
    drop(stalled);
    let lines = log.lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].1.contains("\"streams\""), "{lines:?}");
}

#[test]
fn longest_hold_needs_concurrency_limit() {
    let limit = Limit::new("minute", Quota::per_minute(5)).longest_hold(SECOND * 9);
    let error = Policy::new().try_limit(limit).unwrap_err();
    assert!(matches!(error, ConfigError::NotConcurrent(_)));
}
